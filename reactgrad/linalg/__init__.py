"""Linear algebra, with the names of ``numpy.linalg``: decompositions, solutions, norms."""
