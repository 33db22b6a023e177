"""Training tasks, one per file: next-token prediction, masked words, translation and classification."""
