"""Functions whose nodes are built once and fed again."""
