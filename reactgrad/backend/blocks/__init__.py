"""Large arrays, computed block by block, and the threads that compute them."""
