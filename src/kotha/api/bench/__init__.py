"""This machine's speed, measured beside other implementations of the same work, and how cost grows."""
