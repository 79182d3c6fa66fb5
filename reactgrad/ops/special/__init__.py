"""More elementwise functions: special functions, activations, polynomials, convolution of series."""
