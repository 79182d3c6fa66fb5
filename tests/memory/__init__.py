"""Which values stay in memory."""
