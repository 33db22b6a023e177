"""A text's way through the whole model."""
