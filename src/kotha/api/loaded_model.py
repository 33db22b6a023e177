"""A loaded model with its tokenizer, its device, and its name for use in messages."""

import os
import reprlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from kotha.api import AnyPath
from kotha.artifacts.model_folder import Bundle
from kotha.artifacts.own_text import model_language
from kotha.artifacts.run_folder import find_data, run_config
from kotha.errors import CorpusError, UsageError
from kotha.i18n.message import Message, Plural
from kotha.model.bert import BERT
from kotha.model.config import ModelConfig
from kotha.model.family import Model
from kotha.model.gpt import GPT
from kotha.model.seq2seq import Seq2Seq
from kotha.storage import bundled
from kotha.storage.status import is_directory, is_file
from kotha.text.corpus.sources import kind_of
from kotha.text.shards import Dataset
from kotha.text.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from kotha.text.held_out import HeldOut

Family = TypeVar("Family", GPT, BERT, Seq2Seq)
Text = TypeVar("Text", str, str | None)
_ONLY: dict[type, str] = {
    GPT: "{called} is a {family} model; only GPT models can predict text{instead}",
    BERT: "{called} is a {family} model; only BERT models can fill gaps",
    Seq2Seq: "{called} is a {family} model; only Seq2Seq models can translate",
}
# The command for a model that is not a GPT, by the suffix of its family's name.
_USES = {
    "classifier": Message("; it is a classifier: use classify"),
    "vit": Message("; it is a classifier: use classify"),
    "bert": Message("; it fills gaps: use fill"),
    "seq2seq": Message("; use translate"),
}


class OpenedModel:
    """The base class of ``LanguageModel``: a bundle and the path from which it was loaded."""

    def __init__(self, bundle: Bundle, path: AnyPath | None = None) -> None:
        self.bundle = bundle
        self.path = None if path is None else Path(path)

    @property
    def model(self) -> Model:
        """The model itself, a ``torch.nn.Module``.

        >>> lm.model.config.n_layers
        2
        """
        return self.bundle.model

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer, or None if the model does not take text.

        >>> lm.tokenizer.vocab_size
        600
        """
        return self.bundle.tokenizer

    @property
    def config(self) -> ModelConfig:
        """The model's sizes and settings.

        >>> lm.config.d_model
        96
        """
        return self.bundle.config

    @property
    def language(self) -> str | None:
        """The language of the model's training text, as an ISO 639 code; None if unknown.

        >>> lm.language
        'bn'
        """
        return model_language(self.path)

    @property
    def device(self) -> torch.device:
        """The device that holds the parameters.

        >>> lm.device
        device(type='cpu')
        """
        return next(self.model.parameters()).device

    @property
    def _called(self) -> str:
        return "this" if self.path is None else bundled.title(self.path)

    def _held_out(self, tokenizer: Tokenizer, text: AnyPath | Sequence[str], **reading: Any) -> "HeldOut":
        """Read the documents in a file, a folder or a data folder, or take the texts in a list."""
        from kotha.text.held_out import from_texts, read_held_out

        if not isinstance(text, str | os.PathLike):
            return from_texts(text, tokenizer, str(Plural("{n} text", "{n:,} texts", n=len(text))))
        try:
            return read_held_out(os.fspath(text), tokenizer, **reading)
        except (CorpusError, OSError) as error:
            if isinstance(text, str) and len(text.split()) > 1 and not os.path.exists(text):  # noqa: PTH110
                template = "file {name} not found; to evaluate a string, pass it in a list: [text]"
                raise UsageError(template, name=reprlib.repr(text)) from error
            raise

    def _data(self, baselines: AnyPath) -> Dataset | None:
        """Return the data folder for the baselines, if any; auto is the run's data folder, if it still exists."""
        if baselines == "auto":
            found = None if self.path is None else find_data(run_config(self.path), self.path)
        else:
            found = None if baselines == "none" else Path(baselines)
        return None if found is None else Dataset(found)

    def _training_examples(self, task: Any) -> Any:
        """Return the run's training examples, if the run folder has them."""
        from kotha.finetune.examples import EXAMPLES

        available = self.path is not None and is_directory(self.path / EXAMPLES)
        return task.read_parts(self.path).train if available else None

    def _as(self, kind: type[Family]) -> tuple[Family, Tokenizer]:
        """Return the model and the tokenizer if the model belongs to this family; otherwise raise ``UsageError``."""
        if not isinstance(self.model, kind) or self.tokenizer is None:
            raise self._family_error(_ONLY[kind])
        return self.model, self.tokenizer

    def _family_error(self, template: str) -> UsageError:
        """Return an error that names the model's family and, if known, the command for it."""
        family = self.config.family
        instead = _USES.get(family.rpartition("-")[2], "")
        return UsageError(template, called=self._called, family=family, instead=instead)


def as_text(text: Text) -> Text:
    """Return the text; raise ``UsageError`` for the name of a file: one that exists, or one that ends like a corpus."""
    if text is not None and (_exists(text) or _ends_like_a_corpus(text)):
        raise UsageError(
            "{text!r} is the name of a file, not a text; pass the contents of the file (heads also accepts a path)",
            text=text,
        )
    return text


def _exists(text: str) -> bool:
    with suppress(OSError, ValueError):  # too long for a file name, or contains NUL
        return is_file(Path(text))
    return False


def _ends_like_a_corpus(text: str) -> bool:
    with suppress(ValueError):
        return len(text.split()) == 1 and bool(kind_of(text))
    return False
