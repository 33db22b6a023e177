"""The Hugging Face door, out and in."""
