"""Attention heads: their kinds, their importance, and their redundancy."""
