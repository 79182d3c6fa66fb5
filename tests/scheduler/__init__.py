"""The scheduler: what runs, when, and what is known afterwards."""
