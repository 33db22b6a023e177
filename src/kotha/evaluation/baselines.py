"""What a language model has to beat, on the very tokens that it is measured on.

``ln V`` is for one who knows nothing: every token of the vocabulary is as likely as any other. ``unigram`` is for one
who knows how often each token occurs, one added to each count, as a run's ``references`` have it. ``3-gram`` and
``5-gram`` are for one who has counted (``ngram.py``), in the text that the model has learned from: a model that does
not beat them has learned nothing that counting does not give in a minute.
"""

import math
from collections.abc import Sequence

import numpy as np

from kotha.errors import DataError
from kotha.evaluation.ngram import KneserNey
from kotha.evaluation.perplexity import figures
from kotha.evaluation.text_score import Baseline, Baselines
from kotha.i18n.message import Message, OnProgress
from kotha.text.held_out import HeldOut, Line, frequency_nats, tokens_of
from kotha.text.shards import Dataset

ORDERS = (3, 5)
# Counting this many takes a minute or two; of more text the first are counted, and the answer says so.
MAX_TOKENS = 10_000_000


def count_baselines(data: Dataset, text: HeldOut, vocab_size: int, on_progress: OnProgress | None = None) -> Baselines:
    """Count the training split of a data folder, and measure on a text of the same tokenizer."""
    if data.tokenizer.fingerprint != text.tokenizer:
        raise DataError(
            "{path} was made by tokenizer {fingerprint}, and the text by {tokenizer}; baselines are counted on the "
            "tokens of the model: give the data that it was trained on",
            path=data.path,
            fingerprint=data.tokenizer.fingerprint,
            tokenizer=text.tokenizer,
        )
    learned = tokens_of(data["train"], MAX_TOKENS)
    rows = baselines(learned, text, vocab_size, ORDERS, on_progress)
    return Baselines(rows, str(data.path), len(learned), data["train"].info.tokens)


def baselines(
    learned: Line, text: HeldOut, vocab_size: int, orders: Sequence[int], on_progress: OnProgress | None = None
) -> list[Baseline]:
    """Figures to beat on a text, from tokens of documents end to end that may be counted."""
    counts = (np.bincount(each, minlength=vocab_size) for each in (learned, text.line))
    rows = [_row("ln V", math.log(vocab_size), text), _row("unigram", frequency_nats(*counts), text)]
    for done, order in enumerate(orders):
        if on_progress is not None:
            on_progress(Message("counting"), done, len(orders))
        counted = KneserNey(learned, order, vocab_size, text.end)
        rows.append(_row(f"{order}-gram", float(counted.nats(text.line).mean()), text))
    if on_progress is not None and orders:
        on_progress(Message("counting"), len(orders), len(orders))
    return rows


def _row(name: str, loss: float, text: HeldOut) -> Baseline:
    return Baseline(name, **figures(loss, text))
