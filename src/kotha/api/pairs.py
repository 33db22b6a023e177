"""A translator out of a table of pairs, from Python and for the command."""

import os
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from kotha.api import Place
from kotha.artifacts.run_folder import RunFolder
from kotha.errors import UsageError
from kotha.finetune.examples import ExamplesRequest, start
from kotha.finetune.examples import resume as resume_run
from kotha.finetune.pairs import USUAL_PRESET, TranslatePairs
from kotha.i18n.message import Option
from kotha.storage.status import is_file
from kotha.text.corpus.documents import field_names
from kotha.text.corpus.pairs import TextPairs, read_text_pairs
from kotha.text.corpus.problems import Errors
from kotha.text.tokenizer.importers import import_tokenizer
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.origin import Origin
from kotha.training.settings import TrainRequest


@dataclass(frozen=True)
class PairsAsked:
    """How a table of pairs is read, and what is held out of it."""

    pair: tuple[str, str] | None = None  # fields of source and target; None: guessed
    reverse: bool = False  # whether it learns the other direction
    tokenizer: Tokenizer | Place | None = None  # for both languages; None: trained on the pairs
    validation: Place | None = None  # pairs to choose by; None: a share of the data
    test: Place | None = None  # pairs to be measured on; None: a share of the data
    errors: Errors = "stop"

    def read(self, place: Place, like: TextPairs | None = None) -> TextPairs:
        """The pairs of a table, in the direction that was asked for; ``like`` has the fields to take."""
        if like is not None:
            return read_text_pairs(Path(place), like.source_field, like.target_field, errors=self.errors)
        found = read_text_pairs(Path(place), *(self.pair or (None, None)), errors=self.errors)
        return found.reversed if self.reverse else found


def is_table(data: Place) -> bool:
    """Whether a training learns from a table of pairs, and not from a data folder: a table is a file."""
    return is_file(Path(data))


def check_for_folder(data: Place, asked: PairsAsked) -> None:
    """Refuse what is only for a table where the data is a folder."""
    usual = PairsAsked()
    given = [each.name for each in fields(asked) if getattr(asked, each.name) != getattr(usual, each.name)]
    if given:
        raise UsageError(
            "{given}: for a table of pairs, which is a file, and {data} is none",
            given=[Option(name) for name in given],
            data=data,
        )


def train_on_pairs(
    data: Place,
    folder: RunFolder,
    wish: TrainRequest,
    asked: PairsAsked,
    *,
    recipe: str | None = None,
    origin: Origin | None = None,
    resume: bool = False,
    **heard: Any,
) -> dict[str, Any]:
    """Train a translator, or go on with one; returns the summary. ``heard`` is on_event and on_remark."""
    if resume:
        if wish.minutes is not None or origin is not None:
            raise UsageError("a run that is resumed goes on from its own weights and has its steps, or other steps")
        return resume_run(TranslatePairs(), folder, dict(wish.changes), **heard)
    if origin is not None:
        wish = replace(wish, model=origin.bundle.config)
    elif wish.preset is None:
        raise UsageError(
            "{data} is a file and no data folder: texts to learn from are prepared first; a table of "
            "pairs needs a preset that translates: {preset}",
            data=data,
            preset=Option("preset", USUAL_PRESET),
        )
    if asked.pair is None and Path(data).suffix != ".parquet" and len(field_names(os.fspath(data))) < 2:
        raise UsageError(
            "{data} has one column or none, and a pair has two: give tsv, csv or jsonl with a source "
            "and its target in each row",
            data=data,
        )
    folder.check_new()
    pairs = asked.read(data)
    validation, test = (None if place is None else asked.read(place, pairs) for place in (asked.validation, asked.test))
    tokenizer = asked.tokenizer
    if tokenizer is not None and not isinstance(tokenizer, Tokenizer):
        tokenizer = import_tokenizer(os.fspath(tokenizer))
    request = ExamplesRequest(pairs, origin, validation, test, tokenizer=tokenizer, recipe=recipe, wish=wish)
    return start(TranslatePairs(), request, folder, **heard)
