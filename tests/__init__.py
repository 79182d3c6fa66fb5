"""Tests of reactgrad and of its scheduler. ``tests/README.md`` says which file proves what."""
