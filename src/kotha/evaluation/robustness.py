"""Robustness: the drop in a score on perturbed text (noise, another script) or on text from another domain.

The model is evaluated on a text, and again on the same text perturbed by ``text/perturb.py``, with the changes that a
search finds to be the worst (``text/worst_case.py``), or on another text of the same kind from another domain or
dialect. The score depends on the model: bits per word for a GPT on documents
(perturbations change the number of bytes and characters, but not the number of words), the share of correct answers for
a GPT on conversations, macro-F1 for a classifier, and the chrF++ of translations of the perturbed sources for a
translator. In conversations only the last line (the question) is perturbed, because a perturbed passage might no longer
contain the expected answer.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kotha.artifacts.model_folder import Bundle
from kotha.errors import UsageError, nearest
from kotha.evaluation.classification import evaluate_classifier
from kotha.evaluation.instructions import evaluate_instructions
from kotha.evaluation.perplexity import evaluate_text
from kotha.evaluation.result import Measurement
from kotha.evaluation.translation import evaluate_pairs
from kotha.generation.classify import Classifier
from kotha.i18n.message import Message, OnProgress, Text
from kotha.i18n.short_repr import ShortRepr
from kotha.model.classifier import TextClassifier
from kotha.model.gpt import GPT
from kotha.model.seq2seq import Seq2Seq
from kotha.report.table import Table
from kotha.text.choices import Errors
from kotha.text.corpus.dialogues import holds_dialogues, read_dialogues
from kotha.text.corpus.labelled import read_labelled
from kotha.text.corpus.pairs import read_text_pairs
from kotha.text.held_out import from_texts, read_held_out
from kotha.text.perturb import PERTURBATIONS, perturb
from kotha.text.tokenizer.chat import Turn
from kotha.text.worst_case import MOST_WORDS, worst_case

# The maximum size of the text for each evaluation, in bytes.
_MOST_BYTES = 1 << 20
_SHOWN_CHARACTERS = 80
# The search for the worst case tries a hundred versions of each text, so all figures are then for the first texts, and
# for the beginnings of documents.
WORST, _MOST_SEARCHED = "worst", 20
_KINDS = (*PERTURBATIONS, WORST)


@dataclass(frozen=True, repr=False)
class ScoreDrop(ShortRepr):
    """The score on perturbed text or on another text."""

    kind: str
    after: float
    change: float  # relative to the unchanged text
    changed_words: float | None  # share of words that differ; None for another text
    example: str  # first characters of the evaluated text


@dataclass(frozen=True, repr=False)
class Robustness(Measurement):
    """A score on unchanged text and with each perturbation."""

    figure: Text
    more_is_better: bool
    before: float
    falls: tuple[ScoreDrop, ...]
    share: float  # share of words that a perturbation of single words changes
    seed: int


class _Material(NamedTuple):
    """The texts to perturb, and a function that scores a model on the result."""

    figure: Text
    texts: tuple[str, ...]  # to be perturbed
    measure: Callable[[tuple[str, ...]], float]
    more_is_better: bool = True
    losses: Callable[[int, Sequence[str]], list[float]] | None = None
    """The losses on versions of a text, given its index; None if the worst case cannot be searched."""


def evaluate_perturbed(
    bundle: Bundle,
    path: Path,
    kinds: Sequence[str],
    *,
    share: float = 0.2,
    seed: int = 0,
    pair: tuple[str | None, str | None] = (None, None),
    errors: Errors = "stop",
    on_progress: OnProgress | None = None,
) -> Robustness:
    """Evaluate a model on a text and on each of ``kinds``: a perturbation, or the path of another text.

    ``pair`` names the source and target fields of translations; None guesses them.
    """
    if not kinds:
        raise UsageError(
            "no perturbation given; give one or more of {perturbations}, or a file",
            perturbations=list(_KINDS),
        )
    for kind in kinds:
        if kind not in _KINDS and not Path(kind).exists():
            raise UsageError(
                "unknown perturbation {kind!r}, and no file of that name{nearest}",
                kind=kind,
                nearest=nearest(kind, _KINDS),
            )
    given = _material(bundle, path, pair, errors, _MOST_SEARCHED if WORST in kinds else None)
    if WORST in kinds and given.losses is None:
        raise UsageError("the worst case can be searched only for a classifier, or for a gpt on documents")
    before = given.measure(given.texts)
    falls = []
    for number, kind in enumerate(kinds):
        if on_progress is not None:
            on_progress(Message("measuring"), number + 1, 1 + len(kinds))
        if kind == WORST and given.losses is not None:
            pairs = enumerate(given.texts)
            texts = tuple(worst_case(text, partial(given.losses, number), share) for number, text in pairs)
            after, words = given.measure(texts), _changed_words(given.texts, texts)
        elif kind in PERTURBATIONS:
            texts = tuple(perturb(text, kind=kind, share=share, seed=seed) for text in given.texts)
            after, words = given.measure(texts), _changed_words(given.texts, texts)
        else:
            other = _material(bundle, Path(kind), pair, errors)
            texts, after, words = other.texts, other.measure(other.texts), None
        falls.append(
            ScoreDrop(kind, after, after / before - 1 if before else math.nan, words, texts[0][:_SHOWN_CHARACTERS])
        )
    return Robustness(given.figure, given.more_is_better, before, tuple(falls), share, seed)


def robustness_table(found: Robustness, name: str) -> Table:
    """Return a table of the score on unchanged text and with each perturbation."""
    rows: list[list[Text]] = [[Message("unchanged"), f"{found.before:.4f}", "", "", ""]]
    for fall in found.falls:
        words: Text = Message("another text") if fall.changed_words is None else f"{fall.changed_words:.0%}"
        change = "—" if math.isnan(fall.change) else f"{fall.change:+.1%}"
        kind = Message(fall.kind) if fall.kind in _KINDS else fall.kind
        rows.append([kind, f"{fall.after:.4f}", change, words, " ".join(fall.example.split())])
    remark = Message(
        "{figure}: {better}; word-level perturbations change {share:.0%} of the words (seed {seed})",
        **vars(found),
        better=Message("higher is better") if found.more_is_better else Message("lower is better"),
    )
    header = [Message("perturbation"), found.figure, Message("change"), Message("words changed"), Message("excerpt")]
    remarks = [remark]
    if any(fall.kind == WORST for fall in found.falls):
        remarks.append(Message("the search takes long: all figures are for the first {n} texts only", n=_MOST_SEARCHED))
    return Table(name, header, rows, remarks)


def _material(
    bundle: Bundle, path: Path, pair: tuple[str | None, str | None], errors: Errors, most: int | None = None
) -> _Material:
    model, tokenizer = bundle.model, bundle.tokenizer
    if isinstance(model, TextClassifier):
        table = read_labelled(path, errors=errors)
        table = table.chosen(range(len(table))[:most])
        classifier = Classifier(bundle)

        def surprise(number: int, texts: Sequence[str]) -> list[float]:
            if table.labels[number] not in classifier.labels:
                return [0.0] * len(texts)
            right = classifier.labels.index(table.labels[number])
            losses: list[float] = (-classifier.probabilities(texts)[:, right].log()).tolist()
            return losses

        measure = lambda texts: evaluate_classifier(bundle, replace(table, texts=texts)).macro_f1
        return _Material("macro-F1", table.texts, measure, losses=surprise)
    if isinstance(model, Seq2Seq) and tokenizer is not None:
        pairs = read_text_pairs(path, *pair, errors=errors)
        return _Material(
            "chrF++", pairs.sources, lambda sources: evaluate_pairs(bundle, replace(pairs, sources=sources)).chrf
        )
    if not isinstance(model, GPT) or tokenizer is None:
        raise UsageError(
            "robustness cannot be measured for a {family} model; use a gpt, a classifier or a seq2seq",
            family=bundle.config.family,
        )
    if holds_dialogues(path):
        dialogues = read_dialogues(path, errors=errors)
        parts = [turns[-2].text.rpartition("\n") for turns in dialogues.turns]

        def correct(questions: tuple[str, ...]) -> float:
            changed = tuple(
                (*turns[:-2], Turn(turns[-2].role, above + line_end + question), turns[-1])
                for turns, (above, line_end, _), question in zip(dialogues.turns, parts, questions, strict=True)
            )
            return evaluate_instructions(bundle, replace(dialogues, turns=changed)).exact_match

        return _Material(Message("answered correctly"), tuple(question for *_, question in parts), correct)
    held_out = read_held_out(path, tokenizer, errors=errors, most_bytes=_MOST_BYTES)
    documents = tuple(tokenizer.decode(document[:-1].tolist()) for document in held_out)
    if most is not None:
        documents = tuple(" ".join(text.split()[:MOST_WORDS]) for text in documents[:most])
    words = sum(len(text.split()) for text in documents)

    def bits(texts: tuple[str, ...]) -> float:
        score = evaluate_text(model, from_texts(texts, tokenizer, str(path)))
        return score.loss_nats * score.tokens / math.log(2) / words

    losses = lambda number, texts: [bits((text,)) for text in texts]
    return _Material(Message("bits per word"), documents, bits, more_is_better=False, losses=losses)


def _changed_words(texts: Sequence[str], changed: Sequence[str]) -> float:
    words = [(text.split(), other.split()) for text, other in zip(texts, changed, strict=True)]
    same = sum(a == b for before, after in words for a, b in zip(before, after, strict=False))
    return 1 - same / max(1, sum(len(before) for before, _ in words))
