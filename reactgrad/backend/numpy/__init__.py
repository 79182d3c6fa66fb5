"""Kernels on NumPy arrays."""
