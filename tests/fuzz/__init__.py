"""Coverage-guided fuzzing of the loaders, in child processes."""
