"""Slow twins to read and to watch: the same results as the fast ones, in the fewest honest lines."""
