"""Checks that optional libraries are installed, before any work starts. Nothing here imports torch."""

from kotha.export.libraries import require_libraries as require_for_export
from kotha.training.sweep.study import require_optuna

__all__ = ["require_for_export", "require_optuna"]
