"""Benchmarks on this machine, compared with other implementations of the same work."""
