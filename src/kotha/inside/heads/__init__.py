"""Attention heads: what each one does, how important it is, and which ones are redundant."""
