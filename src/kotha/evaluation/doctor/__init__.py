"""A training curve read in plain words."""
