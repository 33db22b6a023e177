"""Doors to other tools: a model goes out, a model comes in, and each crossing proves itself."""
