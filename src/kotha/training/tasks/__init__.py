"""Training tasks, one per file: next tokens, masked words, translation, classes."""
