"""Derivatives of functions, in the form of JAX."""
