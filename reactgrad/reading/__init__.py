"""What a read runs and what a reader gets: refresh, value, limits, plan, run."""
