"""How far a score falls when the text is written otherwise (robustness): noise, another script, another domain.

The same model is measured on the same text, as it is and as ``text/perturb.py`` changes it; or on another text of the
same sort, for another domain or dialect. What is measured depends on what the model does: a GPT's bits per word on
documents (words stay the same where bytes and characters do not), the share of questions that it answers right, a
classifier's macro-F1, a translator's chrF++ from changed sources. Of questions only the last line is changed, the
question itself: in a changed passage the wanted answer would no longer stand.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from kotha.artifacts.model_folder import Bundle
from kotha.errors import UsageError, nearest
from kotha.evaluation.classification import evaluate_classifier
from kotha.evaluation.instructions import evaluate_instructions
from kotha.evaluation.measurement import Measurement
from kotha.evaluation.perplexity import evaluate_text
from kotha.evaluation.translation import evaluate_pairs
from kotha.i18n.message import Message, OnProgress, Text
from kotha.model.classifier import TextClassifier
from kotha.model.gpt import GPT
from kotha.model.seq2seq import Seq2Seq
from kotha.report.table import Table
from kotha.storage.status import is_there
from kotha.text.corpus.dialogues import Dialogue, holds_dialogues, read_dialogues
from kotha.text.corpus.labelled import read_labelled
from kotha.text.corpus.pairs import read_text_pairs
from kotha.text.corpus.problems import Errors
from kotha.text.held_out import from_texts, read_held_out
from kotha.text.perturb import PERTURBATIONS, perturb
from kotha.text.tokenizer.chat import Turn

# Of a long text so many bytes are measured, each time.
_MOST_BYTES = 1 << 20
_SHOWN_LETTERS = 80

Change = Callable[[str], str]
Measure = Callable[[Change], float]


@dataclass(frozen=True)
class Fall:
    """One way to write otherwise, and what came of it."""

    kind: str
    after: float
    change: float  # relative to the text as it is
    changed_words: float | None  # share of words that are not as they were; None of another text
    example: str  # the beginning of what was read


@dataclass(frozen=True)
class Robustness(Measurement):
    """A figure on the text as it is, and what becomes of it."""

    figure: Text
    more_is_better: bool
    before: float
    falls: tuple[Fall, ...]
    share: float  # of words, where a kind goes word by word
    seed: int


@dataclass(frozen=True)
class _Material:
    """A text, and how a model is measured on it once its words are changed."""

    figure: Text
    more_is_better: bool
    texts: tuple[str, ...]  # what is changed
    measure: Measure


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
    """Measure a model on a text as it is and as each kind has it; a kind that is a path is another text.

    ``pair`` names the fields of translations; left out, they are guessed.
    """
    if not kinds:
        raise UsageError(
            "how shall the text be changed? name one or several of {perturbations}, or a file",
            perturbations=list(PERTURBATIONS),
        )
    for kind in kinds:
        if kind not in PERTURBATIONS and not is_there(Path(kind)):
            raise UsageError(
                "there is no perturbation {kind!r}, and no such file{nearest}",
                kind=kind,
                nearest=nearest(kind, PERTURBATIONS),
            )
    given = _material(bundle, path, pair, errors)
    before = given.measure(lambda text: text)
    falls = []
    for place, kind in enumerate(kinds):
        if on_progress is not None:
            on_progress(Message("measuring"), place + 1, 1 + len(kinds))
        if kind in PERTURBATIONS:
            change = partial(perturb, kind=kind, share=share, seed=seed)
            after, read = given.measure(change), tuple(map(change, given.texts))
            words = _changed_words(given.texts, read)
        else:
            other = _material(bundle, Path(kind), pair, errors)
            after, read, words = other.measure(lambda text: text), other.texts, None
        falls.append(Fall(kind, after, after / before - 1 if before else math.nan, words, read[0][:_SHOWN_LETTERS]))
    return Robustness(given.figure, given.more_is_better, before, tuple(falls), share, seed)


def robustness_table(found: Robustness, name: str) -> Table:
    """The figure as it is, and as each kind leaves it."""
    rows: list[list[Text]] = [[Message("as it is"), f"{found.before:.4f}", "", "", ""]]
    for fall in found.falls:
        words: Text = Message("another text") if fall.changed_words is None else f"{fall.changed_words:.0%}"
        change = "—" if math.isnan(fall.change) else f"{fall.change:+.1%}"
        kind = Message(fall.kind) if fall.kind in PERTURBATIONS else fall.kind
        rows.append([kind, f"{fall.after:.4f}", change, words, " ".join(fall.example.split())])
    remark = Message(
        "{figure}: {better}; where a kind goes word by word, {share:.0%} of them, seed {seed}",
        figure=found.figure,
        better=Message("more is better") if found.more_is_better else Message("less is better"),
        share=found.share,
        seed=found.seed,
    )
    header = [Message("written"), found.figure, Message("change"), Message("words changed"), Message("begins")]
    return Table(name, header, rows, [remark])


def _material(bundle: Bundle, path: Path, pair: tuple[str | None, str | None], errors: Errors) -> _Material:
    if isinstance(bundle.model, TextClassifier):
        return _labelled(bundle, path, errors)
    if isinstance(bundle.model, Seq2Seq) and bundle.tokenizer is not None:
        return _translations(bundle, path, pair, errors)
    if isinstance(bundle.model, GPT) and bundle.tokenizer is not None:
        return _questions(bundle, path, errors) if holds_dialogues(path) else _documents(bundle, path, errors)
    raise UsageError(
        "a {family} model is not measured on changed texts; a gpt, a classifier and a seq2seq are",
        family=bundle.config.family,
    )


def _documents(bundle: Bundle, path: Path, errors: Errors) -> _Material:
    model, tokenizer = bundle.model, bundle.tokenizer
    assert isinstance(model, GPT) and tokenizer is not None, "looked at before"
    held_out = read_held_out(path, tokenizer, errors=errors, most_bytes=_MOST_BYTES)
    texts = tuple(tokenizer.decode(document[:-1].tolist()) for document in held_out)
    words = sum(len(text.split()) for text in texts)

    def measure(change: Change) -> float:
        score = evaluate_text(model, from_texts(map(change, texts), tokenizer, str(path)))
        return score.loss_nats * score.tokens / math.log(2) / words

    return _Material(Message("bits per word"), False, texts, measure)


def _questions(bundle: Bundle, path: Path, errors: Errors) -> _Material:
    asked = read_dialogues(path, errors=errors)
    texts = tuple(turns[-2].text.rpartition("\n")[2] for turns in asked.turns)

    def measure(change: Change) -> float:
        turned = tuple(_with_question(turns, change) for turns in asked.turns)
        return evaluate_instructions(bundle, replace(asked, turns=turned)).right

    return _Material(Message("answered right"), True, texts, measure)


def _with_question(turns: Dialogue, change: Change) -> Dialogue:
    """A conversation with the last line before its answer changed."""
    above, line_end, question = turns[-2].text.rpartition("\n")
    return (*turns[:-2], Turn(turns[-2].role, above + line_end + change(question)), turns[-1])


def _translations(bundle: Bundle, path: Path, pair: tuple[str | None, str | None], errors: Errors) -> _Material:
    pairs = read_text_pairs(path, *pair, errors=errors)

    def measure(change: Change) -> float:
        return evaluate_pairs(bundle, replace(pairs, sources=tuple(map(change, pairs.sources)))).chrf

    return _Material("chrF++", True, pairs.sources, measure)


def _labelled(bundle: Bundle, path: Path, errors: Errors) -> _Material:
    table = read_labelled(path, errors=errors)

    def measure(change: Change) -> float:
        return evaluate_classifier(bundle, replace(table, texts=tuple(map(change, table.texts)))).macro_f1

    return _Material("macro-F1", True, table.texts, measure)


def _changed_words(texts: Sequence[str], changed: Sequence[str]) -> float:
    words = [(text.split(), other.split()) for text, other in zip(texts, changed, strict=True)]
    same = sum(a == b for before, after in words for a, b in zip(before, after, strict=False))
    return 1 - same / max(1, sum(len(before) for before, _ in words))
