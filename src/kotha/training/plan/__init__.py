"""A training seen from before: operations, memory and time; and backwards, from a budget to a design."""
