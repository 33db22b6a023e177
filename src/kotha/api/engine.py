"""The engine that commands use to generate text; it does not use torch if the output is the same without it."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kotha.generation.conversation import Conversation as Conversation
from kotha.generation.engine import Engine as Engine
from kotha.generation.light import light_model
from kotha.generation.request import Request as Request
from kotha.generation.request import Result as Result
from kotha.generation.settings import SamplingSettings as SamplingSettings

if TYPE_CHECKING:
    from kotha.generation.weights import Weights


def open_engine(folder: Path, max_batch: int = 1, weights: 'Weights | Literal["stored"]' = "stored") -> Engine:
    """Open an engine for a run or model folder, on a GPU if available."""
    light = light_model(folder) if weights in ("stored", "float32") else None
    if light is not None:
        model, tokenizer, chat = light
        return Engine(model, tokenizer, max_batch=max_batch, chat=chat)
    from kotha.api.model import load  # imports torch

    return load(folder).engine(max_batch, weights)
