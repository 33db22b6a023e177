"""Kotha (কথা): small language models from raw text, and a clear view of what happens inside them."""

__version__ = "0.1.0"
