"""Where values lie, and the steps that compute them; knows slots and specs, no graph."""
