"""Sets, edits, pins and removals: all of it or nothing."""
