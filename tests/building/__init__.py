"""Building nodes."""
