"""Observers: which are called, when, and with what."""
