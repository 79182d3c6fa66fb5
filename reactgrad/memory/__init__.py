"""Which values stay: the budget, values that pass, scratch."""
