"""Checks for tests of users' own code."""

from reactgrad.autodiff import check_grads as check_grads
