"""Plan the operations, memory and time of a training run before it starts, and design a model for a budget."""
