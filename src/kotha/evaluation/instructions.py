"""How many questions are answered right: exact match, word F1, and what a sceptic would ask for beside them.

Each conversation is given up to its last turn, the model writes that turn by its best tokens, and what it wrote is
compared with what stands there, white space, case and the mark at the end aside. Word F1 (that of SQuAD) counts words
in common, for answers that can be put in several ways. A model that was never taught to take turns is not asked in
marks that it does not know: it goes on with the question as a text, and its first sentence is taken for its answer.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from kotha.artifacts.model_folder import Bundle
from kotha.errors import DataError, UsageError
from kotha.evaluation.result import Measurement, beside
from kotha.generation.engine import Engine
from kotha.generation.request import Request
from kotha.generation.settings import SamplingSettings
from kotha.i18n.message import Message, OnProgress, Text
from kotha.model.gpt import GPT
from kotha.report.table import Table
from kotha.text.corpus.dialogues import Dialogues

_ROWS = 16
# Tokens that may be written beyond the longest answer that is wanted: enough to be wrong in, few enough to be quick.
_MORE_TOKENS = 8
_MARKS = "।.!?,;:“”\"'‘’ "
_DEVIATIONS = 1.96  # of a normal distribution: an interval that holds in 95 of 100 cases
_SHOWN = 5


@dataclass(frozen=True)
class Replied:
    """A question, the answer that is wanted, and what was said."""

    question: str
    wanted: str
    said: str
    right: bool


@dataclass(frozen=True)
class InstructionScore(Measurement):
    """How many questions were answered right."""

    part = Replied

    right: float  # share of exact matches
    low: float  # … and where that share lies in 95 of 100 cases (Wilson)
    high: float
    word_f1: float
    examples: int
    taught: bool  # whether it was asked in turns; else it went on with the question as a text
    baselines: dict[str, float] = field(default_factory=dict)  # by name: share of exact matches
    replies: tuple[Replied, ...] = ()


def evaluate_instructions(
    bundle: Bundle,
    held_out: Dialogues,
    learned: Dialogues | None = None,
    on_progress: OnProgress | None = None,
) -> InstructionScore:
    """Ask a GPT the last question of each conversation; beside it, where known, the commonest answer it learned."""
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
    greedy = SamplingSettings(temperature=0.0, repetition_penalty=None)  # an answer repeats words of what was read
    said: list[str] = []
    for start in range(0, len(held_out), _ROWS):
        prompts: list[str | tuple[int, ...]] = [
            "\n".join(turn.text for turn in turns[:-1]) + "\n"
            if template is None
            else tuple(template.prompt(tokenizer, turns[:-1]))
            for turns in held_out.turns[start : start + _ROWS]
        ]
        results = engine.generate([Request(prompt=prompt, tokens=room, settings=greedy) for prompt in prompts])
        texts = [each.text.strip() for each in results]
        # Who was not taught goes on and on: the first sentence counts.
        said += texts if template else [re.split("[\n।]", text)[0].strip() for text in texts]
        if on_progress is not None:
            on_progress(Message("asking"), len(said), len(held_out))
    return score_replies([turns[-2].text for turns in held_out.turns], wanted, said, template is not None, learned)


def score_replies(
    questions: Sequence[str],
    wanted: Sequence[str],
    said: Sequence[str],
    taught: bool = True,
    learned: Dialogues | None = None,
) -> InstructionScore:
    """Compare what was said with what is wanted.

    >>> score = score_replies(["?", "?"], ["পাঁচটি।", "মা।"], ["পাঁচটি", "বাবা।"])
    >>> score.right, round(score.low, 3), round(score.high, 3)
    (0.5, 0.095, 0.905)
    """
    pairs = list(zip(map(_plain, wanted), map(_plain, said), strict=True))
    right = [a == b for a, b in pairs]
    share, n = sum(right) / len(right), len(right)
    others = {}
    if learned is not None and len(learned):
        commonest = Counter(_plain(turns[-1].text) for turns in learned.turns).most_common(1)[0][0]
        others["commonest answer"] = sum(a == commonest for a, _ in pairs) / n
    replies = tuple(map(Replied, questions, wanted, said, right))
    f1 = sum(_word_f1(a, b) for a, b in pairs) / n
    return InstructionScore(share, *wilson_interval(share, n), f1, n, taught, others, replies)


def wilson_interval(share: float, count: int) -> tuple[float, float]:
    """Where a share that was seen in so many cases lies, in 95 of 100 (https://www.jstor.org/stable/2276774).

    >>> [round(each, 3) for each in wilson_interval(0.0, 10)]
    [0.0, 0.278]
    """
    squared = _DEVIATIONS**2
    middle = (share + squared / (2 * count)) / (1 + squared / count)
    half = _DEVIATIONS / (1 + squared / count) * math.sqrt(share * (1 - share) / count + squared / (4 * count**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def instructions_table(score: InstructionScore, name: str, before: float | None = None) -> Table:
    """The share that was right, what it is compared with (``before`` it was taught, too), and the first replies."""
    asked = "{n}; asked as chat turns" if score.taught else "{n}; not a chat model: its first sentence counts"
    interval = {name: f"{getattr(score, name):.1%}" for name in ("low", "high")}
    rows: list[list[Text]] = [
        [Message("answered correctly"), Message("{share} ({low} to {high})", share=f"{score.right:.1%}", **interval)],
        [Message("word overlap (F1)"), f"{score.word_f1:.3f}"],
    ]
    rows += [] if before is None else [[Message("before fine-tuning"), f"{before:.1%}"]]
    rows += [*beside(score.baselines), [Message("questions"), Message(asked, n=f"{score.examples:,}")]]
    for reply in score.replies[:_SHOWN]:
        verdict = Message("right") if reply.right else Message("expected {answer}", answer=reply.wanted)
        rows.append([reply.question.split("\n")[-1], Message("{said} ({verdict})", said=reply.said, verdict=verdict)])
    return Table(name, ["", ""], rows)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).strip(_MARKS)


def _word_f1(wanted: str, said: str) -> float:
    """Of two plain texts."""
    a, b = (Counter(word.strip(_MARKS) for word in text.split()) for text in (wanted, said))
    return 2 * (a & b).total() / max(1, a.total() + b.total())
