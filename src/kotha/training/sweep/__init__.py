"""Hyperparameter sweeps: many short training runs in one study, stopped early if they fall behind (Optuna)."""
