"""The interface of export formats.

A format is an ``Exporter``: its properties, and a function that writes a model and verifies it (see ``parity.py``).
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
    """One export, after validation."""

    bundle: Bundle
    path: Path  # the folder or file to write
    weights: str  # type of the exported weights
    run: Path | None  # the run or model folder
    about: About  # information from that run
    lines: Sequence[str]  # lines of text for the comparison
    overwrite: bool  # whether to replace an earlier export

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer, for formats that require one."""
        assert self.bundle.tokenizer is not None, "the format must set needs_tokenizer"
        return self.bundle.tokenizer


@dataclass(frozen=True)
class Exporter:
    """An export format."""

    opens: Callable[[ModelConfig], Text]  # how an export of this config is opened; raises UnsupportedError
    export: Callable[[ExportJob], ParityReport]  # writes the export atomically and compares it with the model
    weights: tuple[str, ...]  # supported weight types, the default first
    file_name: str | None = None  # name of the exported file; None: a folder is written
    endings: tuple[str, ...] = ()  # accepted file name extensions
    needs_tokenizer: Text | None = None  # for the error message; None if no tokenizer is required


def with_marks_of(tokenizer: Tokenizer, config: ModelConfig) -> Tokenizer:
    """Return the tokenizer, configured to add the special tokens that surrounded texts in training."""
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
    is_configured = tokenizer.backend.encode("").ids == [*before, *after]
    return tokenizer if is_configured else framed(tokenizer, before, after)
