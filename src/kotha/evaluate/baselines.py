"""What a language model has to beat, on the very tokens that it is measured on.

``ln V`` is for one who knows nothing: every token of the vocabulary is as likely as any other. ``unigram`` is for one
who knows how often each token occurs, one added to each count, as a run's ``references`` have it. ``3-gram`` and
``5-gram`` are for one who has counted (``ngram.py``), in the text that the model has learned from: a model that does
not beat them has learned nothing that counting does not give in a minute.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kotha.errors import DataError, KothaError
from kotha.evaluate.held_out import HeldOut, Line, tokens_of
from kotha.evaluate.ngram import KneserNey
from kotha.evaluate.perplexity import figures
from kotha.files.tables import read_table
from kotha.runs import data_of
from kotha.text.frequencies import frequency_nats
from kotha.text.shards import DATASET_FILE, Dataset, identity_of
from kotha.wording import OnProgress

ORDERS = (3, 5)
# Counting this many takes a minute or two; of more text the first are counted, and the answer says so.
MAX_TOKENS = 10_000_000


@dataclass(frozen=True)
class Baseline:
    """One figure to beat."""

    name: str
    loss_nats: float
    perplexity: float
    bits_per_byte: float
    bits_per_character: float


@dataclass(frozen=True)
class Baselines:
    """All figures to beat, and the text that they were counted on."""

    rows: list[Baseline]
    counted: str  # where the text that was counted comes from
    counted_tokens: int
    all_tokens: int  # tokens of that text; where they are more, only the first were counted

    @property
    def references(self) -> dict[str, float]:
        """Nats by name, as a run's config has them."""
        return {row.name: row.loss_nats for row in self.rows}


def count_baselines(
    data: Dataset,
    text: HeldOut,
    vocab_size: int,
    *,
    orders: Sequence[int] = ORDERS,
    max_tokens: int = MAX_TOKENS,
    on_progress: OnProgress | None = None,
) -> Baselines:
    """Count the training split of a data folder, and measure on a text of the same tokenizer."""
    if data.tokenizer.fingerprint != text.tokenizer:
        raise DataError(
            f"{data.path} was made by tokenizer {data.tokenizer.fingerprint}, and the text by {text.tokenizer}; "
            "baselines are counted on the tokens of the model: give the data that it was trained on"
        )
    learned = tokens_of(data["train"], max_tokens)
    rows = baselines(learned, text, vocab_size, orders, on_progress)
    return Baselines(rows, str(data.path), len(learned), data["train"].info.tokens)


def baselines(
    learned: Line, text: HeldOut, vocab_size: int, orders: Sequence[int] = ORDERS, on_progress: OnProgress | None = None
) -> list[Baseline]:
    """Figures to beat on a text, from tokens of documents end to end that may be counted."""
    counts = (np.bincount(each, minlength=vocab_size) for each in (learned, text.line))
    rows = [_row("ln V", math.log(vocab_size), text), _row("unigram", frequency_nats(*counts), text)]
    for done, order in enumerate(orders):
        if on_progress is not None:
            on_progress("counting", done, len(orders))
        counted = KneserNey(learned, order, vocab_size, text.end)
        rows.append(_row(f"{order}-gram", float(counted.nats(text.line).mean()), text))
    if on_progress is not None and orders:
        on_progress("counting", len(orders), len(orders))
    return rows


def find_data(config: dict[str, Any], run: Path) -> Path | None:
    """The data folder that a run's config names, where it still is as it was: there, or beside the run folder."""
    return find_all_data(config, run)[0]


def find_all_data(config: dict[str, Any], run: Path) -> list[Path | None]:
    """Each data folder that a run has learned from, the first one first; None for one that is gone or has changed."""
    return [_find(named, run) for named in data_of(config)]


def _find(named: dict[str, Any], run: Path) -> Path | None:
    if not isinstance(named.get("path"), str):
        return None
    places = (Path(named["path"]), run.parent / Path(named["path"]).name)
    return next((path for path in places if _is_still(path, named)), None)


def _is_still(folder: Path, named: dict[str, Any]) -> bool:
    """Whether a data folder is the one that a config names; older configs knew only its tokenizer."""
    with suppress(KothaError):
        found = read_table(folder / DATASET_FILE)
        same = named.get("identity") in (None, identity_of(found))
        return same and found.get("tokenizer") == named.get("tokenizer")
    return False


def _row(name: str, loss: float, text: HeldOut) -> Baseline:
    return Baseline(name, **figures(loss, text))
