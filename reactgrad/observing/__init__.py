"""The push side: which callbacks are called, when, and with what."""
