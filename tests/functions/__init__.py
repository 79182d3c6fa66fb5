"""Python functions as nodes."""
