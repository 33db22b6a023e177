"""What Kotha writes and opens again: a model folder, and a run folder around it."""
