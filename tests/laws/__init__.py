"""The rules of evaluation as laws, tried with random programs."""
