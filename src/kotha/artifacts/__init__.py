"""Formats on disk: the model folder and the run folder."""
