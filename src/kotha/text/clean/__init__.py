"""Corpus cleaning before training: duplicates, leakage between splits, other languages.

These functions expect normalized text: words with different encodings of the same letter count as different.
"""
