"""What happens inside a model: every number on paper, every head in view."""
