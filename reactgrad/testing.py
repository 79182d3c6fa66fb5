"""Checks for tests of users' own code."""

from reactgrad.autodiff._check import check_grads as check_grads
