"""The Tokenizer: encoding and decoding, training, import from other formats, and inspection."""
