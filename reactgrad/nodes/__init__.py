"""What a node is made of: handle, op, leaf, output, function, cutoff, the place it was built in."""
