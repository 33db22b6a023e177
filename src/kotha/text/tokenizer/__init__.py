"""The one Tokenizer: how it cuts text, how it is trained, opened from elsewhere and looked at."""
