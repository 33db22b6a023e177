"""Loaders given what nobody would write: coverage-guided fuzzing, in this process's children."""
