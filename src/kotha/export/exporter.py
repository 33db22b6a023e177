"""What every export format has in common: the job that it is given, and what it says of itself.

A format is an ``Exporter``: a few facts, and a function that writes a model and compares it (see ``parity.py``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kotha.artifacts.model_folder import Bundle
from kotha.export.card import About
from kotha.export.parity import ParityReport
from kotha.i18n.message import Text
from kotha.model.config import BERTConfig, ClassifierConfig, GPTConfig, ModelConfig
from kotha.text.tokenizer.prompt import framed, start_of_document
from kotha.text.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class ExportJob:
    """One export, once it is known that it can be done."""

    bundle: Bundle
    path: Path  # the folder, or the one file, that is written
    weights: str  # their type there
    run: Path | None  # where the model came from
    about: About  # what that run tells of it
    lines: Sequence[str]  # what is compared on
    overwrite: bool  # replace what was exported there before

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's; asked for by formats that need one."""
        assert self.bundle.tokenizer is not None, "a format that needs a tokenizer says so"
        return self.bundle.tokenizer


@dataclass(frozen=True)
class Exporter:
    """A format that models are exported to."""

    opens: Callable[[ModelConfig], Text]  # as what a config opens there, or else an UnsupportedError
    export: Callable[[ExportJob], ParityReport]  # writes it, whole or not at all, and compares it there
    weights: tuple[str, ...]  # types of weights, the usual one first
    file_name: str | None = None  # of the one file that holds everything; None: it is a folder
    endings: tuple[str, ...] = ()
    needs_tokenizer: Text | None = None  # what needs one


def with_marks_of(tokenizer: Tokenizer, config: ModelConfig) -> Tokenizer:
    """The tokenizer with the marks that texts stood between in training, so that it puts them there by itself."""
    before, after = list[int](), list[int]()
    if isinstance(config, ClassifierConfig):
        *before, end = (tokenizer.special[role] for role in config.marks)
        after = [end]
    elif isinstance(config, BERTConfig) and {"cls", "sep"} <= tokenizer.special.keys():
        before, after = [tokenizer.special["cls"]], [tokenizer.special["sep"]]
    elif isinstance(config, GPTConfig):
        start = start_of_document(tokenizer)
        before = [] if start is None else [start]
    else:
        return tokenizer
    does_so_already = tokenizer.backend.encode("").ids == [*before, *after]
    return tokenizer if does_so_already else framed(tokenizer, before, after)
