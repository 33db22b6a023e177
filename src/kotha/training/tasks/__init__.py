"""What a run can learn, one task a file: next tokens, masked words, translation, classes."""
