"""What OpenAI's clients ask, and in the form in which they expect it."""
