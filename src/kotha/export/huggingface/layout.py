"""A layout of Hugging Face: what one architecture there has, and which of our configs fit it.

What a config has that a layout does not is an obstacle, and named. A bias that a layout always has and a model lacks is
none: zeros in its place say the same. The layouts themselves are tables in ``layouts.py``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kotha.export.huggingface.renaming import Names
from kotha.model.config import ModelConfig


@dataclass(frozen=True)
class Layout:
    """One architecture of transformers."""

    title: str
    model_type: str
    architecture: str
    family: type[ModelConfig]
    names: Names
    settings: Mapping[str, tuple[str, Any]]
    """Ours, with theirs and what transformers takes where a config.json leaves it out."""
    always: Mapping[str, tuple[Any, ...]]
    """Ours that cannot be chosen there; of several the first is usual."""
    because: Mapping[str, str]
    """Why, as the end of "GPT-2 …"."""
    fills: tuple[str, ...] = ()
    """Biases that are always there, as zeros where a model has none."""
    fixed: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Theirs that must have one of these values; the first is written."""
    twins: Mapping[str, str] = field(default_factory=dict)
    """Theirs that must have the value of another of theirs."""
    whole_heads: bool = True
    """Heads share the model's width evenly, and each has its own key."""

    def obstacles(self, config: ModelConfig) -> list[str]:
        """What a config has that this layout does not, each in words; empty where it fits."""
        found = [
            f"{name}={_shown(getattr(config, name))}: {self.title} {self.because[name]}"
            for name, allowed in self.always.items()
            if getattr(config, name) not in allowed
        ]
        if self.whole_heads and config.n_kv_heads != config.n_heads:
            found.append(f"n_kv_heads={config.n_kv_heads}: {self.title} has a key head for each of its heads")
        if self.whole_heads and config.d_head * config.n_heads != config.d_model:
            found.append(f"d_head={config.d_head}: {self.title} divides d_model={config.d_model} among its heads")
        if getattr(config, "removed_heads", ()):
            found.append(f"removed_heads: {self.title} has all of its heads; export the model before pruning")
        return found

    def full(self, config: ModelConfig) -> ModelConfig:
        """The config with every bias that this layout always has."""
        return config.replace(**dict.fromkeys(self.fills, True))


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
