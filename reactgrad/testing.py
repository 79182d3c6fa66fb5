"""Checks that users call in the tests of their own code: ``rg.testing.check_grads``."""

from reactgrad.autodiff._check import check_grads as check_grads
