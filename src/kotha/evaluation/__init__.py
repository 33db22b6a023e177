"""Evaluation: scores on held-out data, baselines to compare them with, and diagnosis of training curves."""
