"""A run made visible: one page, and TensorBoard."""
