"""``kotha inside``: look into a model, one file a command."""
