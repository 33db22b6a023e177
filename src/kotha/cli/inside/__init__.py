"""``kotha inside``: inspect a model."""
