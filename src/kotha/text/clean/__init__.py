"""Corpus cleaning before training: duplicates, leakage between splits, other languages.

These functions expect normalized text: two encodings of the same letter count as different words.
"""
