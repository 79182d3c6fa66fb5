"""Forks."""
