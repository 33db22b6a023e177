"""Heads: what each one does, how much it matters, and which ones do the same."""
