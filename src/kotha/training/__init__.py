"""Training: from a data folder and a config to a run folder."""
