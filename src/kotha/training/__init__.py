"""Training: turns a data folder and a config into a run folder."""
