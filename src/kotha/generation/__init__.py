"""The generation room: from a model to text."""
