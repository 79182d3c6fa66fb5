"""Reads: what runs, in which thread, and what stops it."""
