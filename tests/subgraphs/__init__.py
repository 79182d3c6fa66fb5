"""Functions that are built once and fed again."""
