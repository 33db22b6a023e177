"""Planning a training run before it starts: operations, memory and time; and designing a model for a budget."""
