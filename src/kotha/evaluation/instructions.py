"""Measure the accuracy of answers to questions: exact match, word F1 and a baseline.

The model is given each conversation up to its last turn and generates that turn greedily. The result is compared with
the expected answer, ignoring white space, case and punctuation at both ends. Word F1 (as in SQuAD) measures the overlap
of words, for answers that can be phrased in several ways. A model without chat tokens is given the question as plain
text, and the first sentence of its continuation is taken as the answer.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from kotha.artifacts.model_folder import Bundle
from kotha.errors import DataError, UsageError
from kotha.evaluation.result import Measurement, baseline_rows
from kotha.generation.engine import Engine
from kotha.generation.request import Request
from kotha.generation.settings import SamplingSettings
from kotha.i18n.message import Message, OnProgress, Text
from kotha.i18n.short_repr import ShortRepr
from kotha.model.gpt import GPT
from kotha.report.table import Table
from kotha.text.corpus.dialogues import Dialogues

_ROWS = 16
# Tokens allowed beyond the longest expected answer, so that an answer that is too long counts as wrong.
_MORE_TOKENS = 8
_MARKS = "।.!?,;:“”\"'‘’ "
_DEVIATIONS = 1.96  # for a 95 % interval
_SHOWN = 5


@dataclass(frozen=True, repr=False)
class AnsweredQuestion(ShortRepr):
    """A question, its expected answer and the model's answer."""

    renamed: ClassVar[Mapping[str, str]] = {"wanted": "expected", "said": "answer", "right": "correct"}

    question: str
    expected: str
    answer: str
    correct: bool


@dataclass(frozen=True, repr=False)
class InstructionScore(Measurement):
    """The accuracy of the answers to a set of questions."""

    part = AnsweredQuestion
    renamed: ClassVar[Mapping[str, str]] = {"taught": "instruction_tuned", "right": "exact_match"}

    exact_match: float  # share of exact matches
    low: float  # 95 % interval of that share (Wilson)
    high: float
    word_f1: float
    examples: int
    instruction_tuned: bool  # whether it is a chat model; otherwise it was given the question as plain text
    baselines: dict[str, float] = field(default_factory=dict)  # by name: share of exact matches
    replies: tuple[AnsweredQuestion, ...] = ()


def evaluate_instructions(
    bundle: Bundle,
    held_out: Dialogues,
    learned: Dialogues | None = None,
    on_progress: OnProgress | None = None,
) -> InstructionScore:
    """Evaluate a GPT on the last turns of conversations.

    If ``learned`` (its training data) is given, the baseline is evaluated too.
    """
    if not isinstance(bundle.model, GPT) or bundle.tokenizer is None:
        raise UsageError(
            "a {family} model cannot answer questions; use a gpt with a tokenizer", family=bundle.config.family
        )
    if not len(held_out):
        raise DataError("no questions to evaluate on; give at least one")
    tokenizer, wanted = bundle.tokenizer, [turns[-1].text for turns in held_out.turns]
    engine, template = Engine(bundle.model, tokenizer, max_batch=_ROWS), bundle.chat
    room = max(map(len, tokenizer.encode_batch(wanted))) + _MORE_TOKENS
    room = min(room, bundle.model.config.context_length)
    greedy = SamplingSettings(temperature=0.0, repetition_penalty=None)  # answers repeat words
    answers: list[str] = []
    for start in range(0, len(held_out), _ROWS):
        prompts: list[str | tuple[int, ...]] = [
            "\n".join(turn.text for turn in turns[:-1]) + "\n"
            if template is None
            else tuple(template.prompt(tokenizer, turns[:-1]))
            for turns in held_out.turns[start : start + _ROWS]
        ]
        results = engine.generate([Request(prompt=prompt, tokens=room, settings=greedy) for prompt in prompts])
        texts = [each.text.strip() for each in results]
        # A model without chat tokens does not stop after the answer.
        answers += texts if template else [re.split("[\n।]", text)[0].strip() for text in texts]
        if on_progress is not None:
            on_progress(Message("asking"), len(answers), len(held_out))
    return score_replies([turns[-2].text for turns in held_out.turns], wanted, answers, template is not None, learned)


def score_replies(
    questions: Sequence[str],
    wanted: Sequence[str],
    answers: Sequence[str],
    instruction_tuned: bool = True,
    learned: Dialogues | None = None,
) -> InstructionScore:
    """Compare the model's answers with the expected answers.

    >>> score = score_replies(["?", "?"], ["পাঁচটি।", "মা।"], ["পাঁচটি", "বাবা।"])
    >>> score.exact_match, round(score.low, 3), round(score.high, 3)
    (0.5, 0.095, 0.905)
    """
    pairs = list(zip(map(_plain, wanted), map(_plain, answers), strict=True))
    right = [a == b for a, b in pairs]
    share, n = sum(right) / len(right), len(right)
    others = {}
    if learned is not None and len(learned):
        most_frequent = Counter(_plain(turns[-1].text) for turns in learned.turns).most_common(1)[0][0]
        others["most frequent answer"] = sum(a == most_frequent for a, _ in pairs) / n
    replies = tuple(map(AnsweredQuestion, questions, wanted, answers, right))
    f1 = sum(_word_f1(a, b) for a, b in pairs) / n
    return InstructionScore(share, *wilson_interval(share, n), f1, n, instruction_tuned, others, replies)


def wilson_interval(share: float, count: int) -> tuple[float, float]:
    """Return the 95 % Wilson interval for a share observed in ``count`` cases (https://www.jstor.org/stable/2276774).

    >>> [round(each, 3) for each in wilson_interval(0.0, 10)]
    [0.0, 0.278]
    """
    squared = _DEVIATIONS**2
    middle = (share + squared / (2 * count)) / (1 + squared / count)
    half = _DEVIATIONS / (1 + squared / count) * math.sqrt(share * (1 - share) / count + squared / (4 * count**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def instructions_table(score: InstructionScore, name: str, before: float | None = None) -> Table:
    """Return a table of the accuracy, the baselines (``before`` is the model before fine-tuning), and some replies."""
    asked = "{n}; this is not a chat model, so only the first sentence of its output is compared"
    if score.instruction_tuned:
        asked = "{n}, asked as chat turns"
    interval = {name: f"{getattr(score, name):.1%}" for name in ("low", "high")}
    rows: list[list[Text]] = [
        [
            Message("answered correctly"),
            Message("{share} ({low} to {high})", share=f"{score.exact_match:.1%}", **interval),
        ],
        [Message("word overlap (F1)"), f"{score.word_f1:.3f}"],
    ]
    rows += [] if before is None else [[Message("before fine-tuning"), f"{before:.1%}"]]
    rows += [*baseline_rows(score.baselines), [Message("questions"), Message(asked, n=f"{score.examples:,}")]]
    for reply in score.replies[:_SHOWN]:
        verdict = Message("right") if reply.correct else Message("expected {answer}", answer=reply.expected)
        rows.append([reply.question.split("\n")[-1], Message("{said} ({verdict})", said=reply.answer, verdict=verdict)])
    return Table(name, ["", ""], rows)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).strip(_MARKS)


def _word_f1(wanted: str, answer: str) -> float:
    """Return the word F1 of two plain texts."""
    a, b = (Counter(word.strip(_MARKS) for word in text.split()) for text in (wanted, answer))
    return 2 * (a & b).total() / max(1, a.total() + b.total())
