"""Sets, edits, pins, transactions: made as a whole or not at all; and the shapes that follow."""
