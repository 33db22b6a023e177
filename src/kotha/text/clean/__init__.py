"""Corpus cleaning before training: duplicates, leakage between splits, other languages.

These functions expect normalized text; otherwise words that differ only in the encoding of a letter count as different.
"""
