"""What gradients pass: modes, checkpoints, saved values."""
