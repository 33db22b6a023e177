"""Searching for settings: many short trainings on one study, stopped early where they fall behind (Optuna)."""
