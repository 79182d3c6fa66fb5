"""Discrete Fourier transforms, with the names of ``numpy.fft``."""
