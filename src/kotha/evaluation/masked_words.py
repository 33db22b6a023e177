"""Evaluate a BERT on two tasks: predicting masked words, and deciding whether two segments belong together.

Each document is cut into windows of about equal length that fit the context. Every window is used twice: once as
``[CLS] A [SEP] B [SEP]`` with 15 % of its words masked, and once as a pair to classify. In every second pair, B is text
of the same length from another document. Random choices are seeded by the index of the window, so that all models get
the same input. A word is a single token here, so scores are comparable only between models with the same tokenizer.

The baselines for words are the most frequent token, and the most frequent token after the preceding one, both counted
in the model's training data. The baselines for pairs are a coin flip, and a classifier that tests whether A and B share
more tokens than the median pair.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from kotha.errors import DataError
from kotha.evaluation.result import Measurement, baseline_rows
from kotha.i18n.message import Message, OnProgress, Text
from kotha.model.bert import BERT
from kotha.model.evaluating import check_finite, evaluating, overflow_as_nan
from kotha.report.table import Table
from kotha.text.held_out import HeldOut, Line
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.tasks.masked_words import Masking, n_chosen

_MARKS = 3  # [CLS], and [SEP] twice
_SHORTEST = 4  # tokens in a window, so that it can be split in two and contain a masked word
_ROWS, _TOP, _DRAWS = 16, 5, 20

Pair = tuple[Line, Line, bool]  # A, B, and whether B is from another document


@dataclass(frozen=True, repr=False)
class MaskedScore(Measurement):
    """The accuracy of a BERT on masked words and on pairs."""

    words_accuracy: float
    words_top5: float  # share of words that are among the five most likely
    words_nats: float
    words: int
    pairs_accuracy: float | None  # None if there is only one document
    pairs: int
    documents: int
    text: str
    baselines: dict[str, float] = field(default_factory=dict)  # accuracy by name


@dataclass(frozen=True)
class _Window:
    """A window of a document, split in two."""

    first: Line
    second: Line
    document: int
    number: int

    @property
    def text(self) -> Line:
        return np.concatenate([self.first, self.second])

    @property
    def chance(self) -> np.random.Generator:
        return np.random.default_rng([0, self.number])


def evaluate_masked(
    model: BERT,
    tokenizer: Tokenizer,
    held_out: HeldOut,
    learned: Line | None = None,
    on_progress: OnProgress | None = None,
) -> MaskedScore:
    """Evaluate a BERT on documents; ``learned`` contains the tokens of its training data, for the baselines."""
    marks = Masking(tokenizer)
    windows = list(_windows(held_out, model.config.context_length - _MARKS))
    if not windows:
        raise DataError(
            "{name}: every document has fewer than {shortest} tokens; give longer documents",
            name=held_out.name,
            shortest=_SHORTEST,
        )
    pairs = _pairs(windows)
    masked: list[tuple[int, int]] = []  # for each masked word: the preceding token, and the word itself
    sums, judged = np.zeros(3), 0  # masked words: correct, correct in the top five, nats; pairs: correct
    with evaluating(model), overflow_as_nan(model), torch.inference_mode():
        for start in range(0, len(windows), _ROWS):
            words, figures = _guess_words(model, windows[start : start + _ROWS], marks)
            masked, sums = masked + words, sums + figures
            if some := pairs[start : start + _ROWS]:
                read = model.hidden(*_as_rows([pair[:2] for pair in some], marks, model))
                predicted = model.pair_head(model.pool(read)).argmax(dim=-1).tolist()
                judged += sum(answer == pair[2] for answer, pair in zip(predicted, some, strict=True))
            if on_progress is not None:
                on_progress(Message("windows"), min(start + _ROWS, len(windows)), len(windows))
    others = {} if learned is None else _by_counting(learned, masked, marks.is_ordinary)
    if pairs:
        others |= {"pairs: random guess": 0.5, "pairs: token overlap": _by_common_pieces(pairs)}
    pairs_accuracy, text = judged / len(pairs) if pairs else None, str(held_out.name)
    right, near, nats = (sums / len(masked)).tolist()
    return MaskedScore(right, near, nats, len(masked), pairs_accuracy, len(pairs), held_out.documents, text, others)


def masked_table(score: MaskedScore, name: str) -> Table:
    """Return a table of the scores on masked words and pairs, with their baselines."""
    rows: list[list[Text]] = [
        [Message("masked words predicted correctly"), f"{score.words_accuracy:.1%}"],
        [Message("… among the top five"), f"{score.words_top5:.1%}"],
        [Message("loss, nats per word"), f"{score.words_nats:.3f}"],
    ]
    if score.pairs_accuracy is not None:
        rows.append([Message("pairs classified correctly"), f"{score.pairs_accuracy:.1%}"])
    rows += baseline_rows(score.baselines)
    rows.append([Message("masked words, pairs, documents"), f"{score.words:,}, {score.pairs:,}, {score.documents:,}"])
    return Table(name, ["", ""], rows)


# -- windows and pairs -------------------------------------------------------------------------------------------------


def _windows(held_out: HeldOut, longest: int) -> Iterator[_Window]:
    numbers = count()
    for document, tokens in enumerate(held_out):
        text = tokens[:-1]  # without its end token
        for window in np.array_split(text, -(-len(text) // longest) or 1):
            if (size := len(window)) >= _SHORTEST:
                number, least = next(numbers), max(1, size // 4)
                cut = int(np.random.default_rng([1, number]).integers(least, size - least + 1))
                yield _Window(window[:cut], window[cut:], document, number)


def _pairs(windows: Sequence[_Window]) -> list[Pair]:
    """Return a pair for each window; in every second pair, B is from another document. Empty for a single document."""
    if len({window.document for window in windows}) < 2:
        return []
    return [
        (each.first, _elsewhere(each, windows) if each.number % 2 else each.second, each.number % 2 == 1)
        for each in windows
    ]


def _elsewhere(window: _Window, windows: Sequence[_Window]) -> Line:
    """Return a passage from another document, if possible with the same length as the window's second part."""
    text, chance, draws = np.empty(0, np.int64), window.chance, 0
    while not len(text) or (len(text) < len(window.second) and draws < _DRAWS):
        other = windows[int(chance.integers(len(windows)))]
        if other.document != window.document:
            text, draws = other.text, draws + 1
    return text[: len(window.second)]


def _hide(window: _Window, ordinary: NDArray[np.bool_]) -> Line:
    """Return the positions of the masked words in the concatenation of A and B."""
    found = np.flatnonzero(ordinary[window.text])
    found = found if len(found) else np.arange(len(window.text))
    return np.sort(window.chance.choice(found, n_chosen(len(found)), replace=False)).astype(np.int64)


def _as_rows(texts: Sequence[tuple[Line, Line]], marks: Masking, model: BERT) -> list[Tensor]:
    """Return token ids, segment ids and a mask without the padding, padded to the longest row: three of (B, T)."""
    longest = max(len(first) + len(second) for first, second in texts) + _MARKS
    tokens = np.full((len(texts), longest), marks.pad)
    segments, real = np.zeros_like(tokens), np.zeros(tokens.shape, bool)
    for row, (first, second) in enumerate(texts):
        n_all = len(first) + len(second) + _MARKS
        tokens[row, :n_all] = [marks.cls, *first, marks.sep, *second, marks.sep]
        segments[row, len(first) + 2 : n_all] = 1
        real[row, :n_all] = True
    return [torch.from_numpy(each).to(model.tokens.weight.device) for each in (tokens, segments, real)]


def _guess_words(
    model: BERT, windows: Sequence[_Window], marks: Masking
) -> tuple[list[tuple[int, int]], NDArray[np.float64]]:
    """Return the masked words with the tokens before them, the counts of correct and top-five words, and the loss."""
    tokens, segments, real = _as_rows([(window.first, window.second) for window in windows], marks, model)
    hidden = [_hide(window, marks.is_ordinary) for window in windows]
    rows = np.repeat(np.arange(len(windows)), [len(each) for each in hidden])
    # A follows [CLS]; B follows the first [SEP] as well.
    positions = np.concatenate(
        [each + 1 + (each >= len(window.first)) for window, each in zip(windows, hidden, strict=True)]
    )
    before, wanted = tokens[rows, positions - 1].tolist(), tokens[rows, positions].cpu()
    tokens[rows, positions] = marks.mask
    logits = check_finite(model.head(model.guess(model.hidden(tokens, segments, real)[rows, positions]))).float().cpu()
    logits[:, np.flatnonzero(~marks.is_ordinary)] = -torch.inf  # a masked word is never a special token
    right = logits.topk(min(_TOP, logits.shape[1])).indices == wanted[:, None]
    nats = float(cross_entropy(logits, wanted, reduction="sum"))
    figures = np.array([int(right[:, 0].sum()), int(right.any(dim=1).sum()), nats])
    return list(zip(before, wanted.tolist(), strict=True)), figures


# -- baselines --------------------------------------------------------------------------------------------------------


def _by_counting(learned: Line, masked: Sequence[tuple[int, int]], ordinary: NDArray[np.bool_]) -> dict[str, float]:
    size = len(ordinary)
    counts = np.bincount(learned, minlength=size) * ordinary
    most_frequent = int(counts.argmax())
    following, numbers = np.unique(learned[:-1].astype(np.int64) * size + learned[1:], return_counts=True)
    before, after = following // size, following % size
    numbers = numbers * ordinary[after]
    # The most frequent pair with each preceding token is last in its group, and stays in the dict.
    order = np.lexsort((numbers, before))
    best = dict(zip(before[order].tolist(), after[order].tolist(), strict=True))
    by_pair = sum(best.get(prior, most_frequent) == word for prior, word in masked)
    by_one = sum(word == most_frequent for _, word in masked)
    return {
        "most frequent token": by_one / len(masked),
        "bigram": by_pair / len(masked),
    }


def _by_common_pieces(pairs: Sequence[Pair]) -> float:
    shares = np.array([len({*first.tolist()} & {*second.tolist()}) / len(second) for first, second, _ in pairs])
    unrelated = np.array([pair[2] for pair in pairs])
    return float(((shares <= np.median(shares)) == unrelated).mean())
