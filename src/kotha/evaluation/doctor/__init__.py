"""Diagnosis of a training curve in plain words."""
