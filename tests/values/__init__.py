"""Values and the tables of nodes."""
