"""Diagnosis of a training curve, with advice."""
