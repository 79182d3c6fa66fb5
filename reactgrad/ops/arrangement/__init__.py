"""Elements in another arrangement: flipped, rolled, repeated, padded, joined, inserted."""
