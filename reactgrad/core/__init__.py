"""What every part knows of one graph: its tables, as data, and its handles, names and lifetimes."""
