"""Reading and writing files: status queries, JSON, output paths, locks, atomic writes.

This module imports nothing, so that its submodules can import each other.
"""
