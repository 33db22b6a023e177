"""Kills, power cuts and I/O errors injected into commands at their system calls."""
