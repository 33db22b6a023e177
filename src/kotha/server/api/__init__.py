"""Kotha's own API under ``/api``: tokens, inspection, tasks and training runs."""
