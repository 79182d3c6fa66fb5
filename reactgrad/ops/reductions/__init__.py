"""Reductions, scans and statistics over axes."""
