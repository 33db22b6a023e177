"""Reports of a run: a page, and TensorBoard."""
