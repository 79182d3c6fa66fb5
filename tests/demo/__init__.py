"""Tests of ``reactgrad demo`` and of the command line."""
