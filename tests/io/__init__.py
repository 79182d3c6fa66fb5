"""Graphs in files: everything comes back, nothing harms."""
