"""Parity checks: verify that a converted model behaves like the original.

Two properties are compared: the logits, by their largest difference, and the token ids of lines of text. These are
lines of real text and difficult lines (joiners, two-part vowels, digits, emoji, mixed scripts); for a GPT they are
encoded as prompts.

All formats use the same inputs (``logit_rows``, ``questions``) and provide the outputs of the other program. This
module compares them with the model's, decides whether the check passed, and renders the report.
"""

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kotha.artifacts.model_folder import Bundle
from kotha.artifacts.own_text import own_lines
from kotha.errors import DataError, InstallCommand
from kotha.i18n.message import Message, Text
from kotha.model.bert import BERT
from kotha.model.classifier import TextClassifier
from kotha.model.config import TextConfig
from kotha.model.family import Model
from kotha.model.seq2seq import Seq2Seq
from kotha.model.vit import ViT
from kotha.report.table import Table
from kotha.text.corpus.documents import read_documents
from kotha.text.stories.corpus import stories
from kotha.text.tokenizer.prompt import start_of_document
from kotha.text.tokenizer.tokenizer import Tokenizer

# The largest difference between logits that can result from a different order of float32 sums.
TOLERANCE = 1e-4
N_LINES = 200
# The maximum number of lines from the user's text in the comparison.
_MOST_LINES = 1000

_PASSED = Message("passed")

Encode = Callable[[str], Sequence[int]]

# Lines that are difficult for another implementation of a tokenizer: text that normalization changes, mixed scripts.
AWKWARD_LINES: tuple[str, ...] = (
    "",
    " ",
    "  দুটি  ফাঁক, শুরুতে আর মাঝে ",
    "র\u200d\u09cdযাব আর র\u200c\u09cdযাব, র\u09cd\u200dয",
    "ত\u09cd\u200d আর ৎ; ক্\u200cষ, ক্ষ, ক্\u200dষ",
    "ক\u09c7\u09be আর কো, ক\u09c7\u09d7 আর কৌ",
    "\u09af\u09bc আর \u09df; \u09a1\u09bc আর \u09dc; \u09ac\u09bc",
    "ত\u0981ার কাছে, চ\u0981\u0981াদ, অ\u09beমার",
    "১২৩৪৫৬৭৮৯০ টাকা, 1234567890 taka, ১২.৫%, 3.14",
    "আমি Python শিখি, version ২.০ beta! কেমন আছো?",
    "বাংলা😀ভাষা👨\u200d👩\u200d👧\u200d👦 🇧🇩 ❤\ufe0f",
    "<|endoftext|> </s> [MASK] <|user|> লেখা মাত্র",
    "\ufeffশুরু\u200bমাঝ\u00adশেষ\u00a0ফাঁক",
    "লাইন\nভাঙা\r\nলাইন\tট্যাব\n\n",
    "ﷺ ﬁ Å é ñ Ω हिन्दी 中文 한국어 தமிழ்",
    "া কার দিয়ে শুরু, ্ হসন্ত, ঁ চন্দ্রবিন্দু",
    "https://example.org/পথ?x=১&y=2#অংশ",
    "\u201cউক্তি\u201d \u2018একক\u2019 — ড্যাশ… দাঁড়ি। ৷ ॥ |",
)


@dataclass
class ParityReport:
    """The result of a comparison; a field is None if it was not compared."""

    target: str
    peer: str | None = None  # the other program and its version; None if it is not installed
    architecture: str | None = None  # the other program's name for the architecture, if any
    weights: str | None = None  # type of the exported weights
    remarks: list[Text] = field(default_factory=list)
    """Notes on the result, such as rounded weights or the reason why nothing was checked."""
    tolerance: float | None = TOLERANCE
    """The largest logit difference that is allowed; None for quantized weights, where the best tokens are compared."""
    least_best_equal: float | None = None
    """The fraction of positions at which the best token must match; None if there is no limit."""
    max_logit_difference: float | None = None
    best_equal: float | None = None  # fraction of positions at which the best token matches
    positions: int = 0  # number of positions compared
    lines: int = 0
    lines_different: int = 0
    first_line_different: str | None = None

    @classmethod
    def of(cls, target: str, library: str, peer: str = "{name} {version}", **judged: Any) -> "ParityReport":
        """Return an empty report; its ``peer`` is empty if the library for the comparison is not installed."""
        if find_spec(library) is None:
            template = "not checked: {name} is not installed; install it with: {command}"
            remark = Message(template, name=library, command=InstallCommand("", library))
            return cls(target, remarks=[remark])
        return cls(target, peer=peer.format(name=library, version=version(library)), **judged)

    def compare_logits(self, pairs: Iterable[tuple[Tensor, Tensor]]) -> None:
        """Compare pairs of logits, (ours, theirs), each (..., V)."""
        differences, same = [torch.zeros((), dtype=torch.float64)], 0
        for ours, theirs in pairs:
            assert ours.shape == theirs.shape, (
                f"logits of different shapes: {tuple(ours.shape)} and {tuple(theirs.shape)}"
            )
            differences.append((ours.double() - theirs.double()).abs().max())
            agree = ours.argmax(dim=-1) == theirs.argmax(dim=-1)
            same, self.positions = same + int(agree.sum()), self.positions + agree.numel()
        self.max_logit_difference = float(torch.stack(differences).max())  # max() propagates NaN
        self.best_equal = same / self.positions if self.positions else None

    def compare_lines(self, ours: Encode, theirs: Encode, lines: Sequence[str]) -> None:
        """Count the lines that are encoded to different token ids."""
        different = [line for line in lines if list(ours(line)) != list(theirs(line))]
        self.lines, self.lines_different = len(lines), len(different)
        self.first_line_different = next(iter(different), None)

    @property
    def checked(self) -> bool:
        """Whether anything was compared."""
        return self.peer is not None and bool(self.positions or self.lines)

    @property
    def tokens_equal(self) -> bool | None:
        """Whether every line gave the same token ids; None if no line was compared."""
        return self.lines_different == 0 if self.lines else None

    @property
    def failures(self) -> list[Text]:
        """Return messages about the differences that exceed the limits."""
        found: list[Text] = []
        # `not <=` instead of `>`, so that NaN fails.
        if self.tolerance is not None and self.positions and not (self.max_logit_difference or 0.0) <= self.tolerance:
            found.append(
                Message(
                    "logits differ by up to {largest:.3g}, but at most {most:g} is allowed",
                    largest=self.max_logit_difference,
                    most=self.tolerance,
                )
            )
        if self.least_best_equal is not None and self.positions and not (self.best_equal or 0) >= self.least_best_equal:
            found.append(
                Message(
                    "the most likely token matches at only {share:.1%} of positions; at least {least:.1%} is required",
                    share=self.best_equal,
                    least=self.least_best_equal,
                )
            )
        if self.lines_different:
            found.append(
                Message("{n:,} of {total:,} lines are tokenized differently", n=self.lines_different, total=self.lines)
            )
        return found

    @property
    def passed(self) -> bool:
        """Whether every comparison that was made passed."""
        return not self.failures

    def __repr__(self) -> str:
        verdict = "failed" if self.failures else "passed" if self.checked else "nothing was compared"
        return f"ParityReport({self.target}: {'; '.join([verdict, *map(str, self.failures)])})"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
        words = {name: [*map(str, getattr(self, name))] for name in ("remarks", "failures")}
        judged = {name: getattr(self, name) for name in ("tokens_equal", "checked", "passed")}
        return {**asdict(self), **words, **judged}

    def _repr_html_(self) -> str:
        """Return the report as a table for notebooks."""
        verdict = _PASSED if self.passed else Message("failed")
        title = Message("{name}: {verdict}", name=self.target, verdict=verdict)
        return Table(title, [Message("parity"), ""], rows(self)).html()


def rows(report: ParityReport) -> list[list[Text]]:
    """Return the report as rows of a table."""
    if not report.checked:
        return [[Message("parity"), remark] for remark in report.remarks or [Message("not checked")]]
    found: list[list[Text]] = [[Message("checked with"), report.peer]] if report.peer else []
    if report.positions:
        found.append([Message("largest logit difference"), Message("{n:.3g}", n=report.max_logit_difference)])
        share = Message("{share:.2%} of {n:,} positions", share=report.best_equal, n=report.positions)
        found.append([Message("same best token"), share])
    if report.lines:
        equal = report.lines - report.lines_different
        found.append([Message("same token ids"), Message("{n:,} of {total:,} lines", n=equal, total=report.lines)])
    if report.first_line_different is not None:
        found.append([Message("first line that differs"), repr(report.first_line_different)])
    found += [[Message("remark"), remark] for remark in report.remarks]
    verdict: Text = _PASSED
    if report.failures:
        verdict = Message("FAILED: {why}", why=report.failures)
    elif report.best_equal is not None and report.tolerance is None and report.least_best_equal is None:
        verdict = Message(
            "token ids match; the loss of precision in the weights is reported, but not checked against a limit"
        )
    return [*found, [Message("verdict"), verdict]]


def logit_rows(
    config: TextConfig, tokenizer: Tokenizer | None, lines: Sequence[str], n_rows: int = 2, most: int = 128
) -> Tensor:
    """Return input ids for the comparison, (B, T): real text up to the context, or random ids without a tokenizer."""
    length = min(config.context_length, most)
    if tokenizer is None:
        return torch.randint(config.vocab_size, (n_rows, length), generator=torch.Generator().manual_seed(0))
    ids = [token for line in lines if line for token in tokenizer.encode(line)] or [0]
    ids *= -(-n_rows * length // len(ids))
    return torch.tensor(ids[: n_rows * length]).view(n_rows, length)


def questions(model: Model, rows: Tensor) -> dict[str, Tensor]:
    """Return the model's inputs in argument order; in all rows but the first, the second half is padding."""
    if isinstance(model, ViT):
        size = model.config.image_size
        shape = (2, model.config.n_channels, size, size)
        return {"images": torch.rand(shape, generator=torch.Generator().manual_seed(0))}
    real = torch.ones_like(rows, dtype=torch.bool)
    real[1:, rows.shape[1] // 2 :] = False
    match model:
        case BERT():
            segments = torch.arange(rows.shape[1]) % model.config.n_segments  # all segments, alternating
            return {"ids": rows, "segments": segments.expand_as(rows), "real": real}
        case Seq2Seq():
            return {"source": rows, "ids": rows.flip(1), "real": real}
        case TextClassifier():
            return {"ids": rows, "real": real}
    return {"ids": rows}


def prompt_reader(tokenizer: Tokenizer) -> Encode:
    """Encode prompts as Kotha does for a GPT: after the start-of-document token."""
    start = start_of_document(tokenizer)
    first = [] if start is None else [start]
    return lambda line: [*first, *tokenizer.encode(line)]


def our_side(bundle: Bundle, dtype: torch.dtype = torch.float32) -> Bundle:
    """Return the reference for the comparison: a float32 copy of the model, rounded to the exported type."""
    return replace(bundle, model=copy.deepcopy(bundle.model).cpu().to(dtype).float().eval())


def rounding(bundle: Bundle, dtype: torch.dtype) -> list[Text]:
    """Return a remark if the export rounds the weights."""
    if dtype.itemsize >= next(bundle.model.parameters()).dtype.itemsize:
        return []
    name = str(dtype).removeprefix("torch.")
    return [Message("the exported weights are rounded to {name}; the comparison uses the rounded weights", name=name)]


def lines_of(texts: Sequence[str]) -> list[str] | None:
    """Return lines for the comparison: the difficult ones, then those in text files; None if no file is given."""
    if not texts:
        return None
    found = (line for document in read_documents(texts) for line in document.text.splitlines() if line.strip())
    lines = list(islice(found, _MOST_LINES))
    if not lines:
        raise DataError("{paths}: no lines to compare", paths=" ".join(texts))
    return [*AWKWARD_LINES, *lines]


def comparison_lines(folder: Path | None, tokenizer: Tokenizer | None) -> list[str]:
    """Return lines for the comparison: the difficult ones, then lines in the model's own language."""
    own = own_lines(folder, tokenizer, N_LINES - len(AWKWARD_LINES))
    return built_in_lines() if own is None else [*AWKWARD_LINES, *own]


def built_in_lines(count: int = N_LINES) -> list[str]:
    """Return lines for the comparison: the difficult ones, then sentences from the built-in stories."""
    texts = (line for story in stories() for line in story.text.splitlines() if line)
    return [*AWKWARD_LINES, *islice(texts, max(0, count - len(AWKWARD_LINES)))]
