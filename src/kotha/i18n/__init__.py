"""Messages, numbers and amounts in the user's language."""
