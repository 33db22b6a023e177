"""The Tokenizer: encoding, decoding, training, import from other formats, and inspection."""
