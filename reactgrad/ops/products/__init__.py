"""Products of vectors, matrices and tensors, and the diagonals and triangles of matrices."""
