"""The published suites of the field by their shape, awkward shapes, and threads."""
