"""Kotha's own API under ``/api``: tokens, inspection, tasks, training runs."""
