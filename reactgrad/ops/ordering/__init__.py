"""Order and choice: sorted, searched, taken, scattered, unique."""
