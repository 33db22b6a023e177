"""The commands: each parses, calls one library function, and prints."""
