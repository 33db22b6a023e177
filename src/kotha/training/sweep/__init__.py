"""Hyperparameter sweeps: many short training runs in one Optuna study; runs that fall behind are stopped early."""
