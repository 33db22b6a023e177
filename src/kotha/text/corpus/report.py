"""What is in a corpus, in one pass: sizes, copies, scripts, the share in the wanted language, and what is broken.

Memory is flat but for the hashes that find exact copies (see ``ExactDuplicates``).
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kotha.text.clean.duplicates import ExactDuplicates
from kotha.text.clean.language import count_scripts, is_language
from kotha.text.clean.shingles import count_words
from kotha.text.corpus.documents import MAX_DOCUMENT_BYTES, read_documents
from kotha.text.corpus.hub import Hub
from kotha.text.corpus.problems import CorpusProblem, Errors
from kotha.text.corpus.sources import Source, list_sources
from kotha.text.normalize import Normalizer, NormalizeReport

_PROBLEMS_KEPT = 20


@dataclass(frozen=True)
class CorpusReport:
    """The numbers of a corpus; sizes are of the documents' text, not of the files that hold it."""

    files: int
    documents: int
    bytes: int
    characters: int
    words: int
    duplicates: int
    """Documents whose text came before, white space aside."""
    language: str
    language_share: float
    """The share of documents, not of bytes, in that language."""
    shortest_characters: int
    median_characters: int
    """Exact up to 1,000 characters, to three significant figures above."""
    longest_characters: int
    script_shares: dict[str, float]
    """The share of each script among all letters and the signs on them, largest first."""
    normalization: dict[str, int]
    """How often each of the default rules would change something."""
    problems: int
    first_problems: list[str]

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values, ready for JSON."""
        return asdict(self)


class _Tally:
    """The running sums behind a report."""

    def __init__(self, language: str) -> None:
        self.language = language
        self.seen = ExactDuplicates()
        self.documents = self.bytes = self.characters = self.words = self.in_language = 0
        self.lengths: Counter[int] = Counter()  # by length to three figures, so it has few entries
        self.shortest = self.longest = 0
        self.scripts: Counter[str] = Counter()
        self.normalizer, self.changes = Normalizer(), NormalizeReport()
        self.problems = 0
        self.first_problems: list[str] = []

    def add(self, text: str) -> None:
        length = len(text)
        self.shortest = min(self.shortest, length) if self.documents else length
        self.longest = max(self.longest, length)
        self.lengths[_three_figures(length)] += 1
        self.documents += 1
        self.bytes += len(text.encode())
        self.characters += length
        self.words += count_words(text)
        self.seen.is_new(text)
        self.scripts.update(count_scripts(text))
        self.in_language += is_language(text, self.language)
        self.normalizer(text, self.changes)

    def note(self, problem: CorpusProblem) -> None:
        self.problems += 1
        if len(self.first_problems) < _PROBLEMS_KEPT:
            self.first_problems.append(str(problem))

    def median(self) -> int:
        """The length of the middle document, the lower of the two where there are two."""
        left = (self.documents + 1) // 2
        for length in sorted(self.lengths):
            left -= self.lengths[length]
            if left <= 0:
                return length
        return 0


def _three_figures(length: int) -> int:
    """Round to three significant figures.

    >>> _three_figures(123), _three_figures(123_456)
    (123, 123000)
    """
    return round(length, 3 - len(str(length))) if length >= 1000 else length


def inspect_corpus(
    paths: Sequence[str | Path | Source],
    *,
    field: str = "text",
    language: str = "bn",
    errors: Errors = "skip",
    format: str | None = None,
    on_problem: Callable[[CorpusProblem], None] | None = None,
    on_bytes: Callable[[int], None] | None = None,
    max_document_bytes: int = MAX_DOCUMENT_BYTES,
    hub: Hub | None = None,
) -> CorpusReport:
    """Read a corpus once and say what is in it; arguments as for ``read_documents``."""
    tally = _Tally(language)

    def note(problem: CorpusProblem) -> None:
        tally.note(problem)
        if on_problem is not None:
            on_problem(problem)

    sources = list_sources(paths, format=format, errors=errors, on_problem=note, hub=hub)
    for document in read_documents(
        sources,
        field=field,
        errors=errors,
        format=format,
        on_problem=note,
        on_bytes=on_bytes,
        max_document_bytes=max_document_bytes,
        hub=hub,
    ):
        tally.add(document.text)
    letters = max(1, tally.scripts.total())
    return CorpusReport(
        files=len(sources),
        documents=tally.documents,
        bytes=tally.bytes,
        characters=tally.characters,
        words=tally.words,
        duplicates=tally.documents - len(tally.seen),
        language=language,
        language_share=tally.in_language / max(1, tally.documents),
        shortest_characters=tally.shortest,
        median_characters=tally.median(),
        longest_characters=tally.longest,
        script_shares={script: count / letters for script, count in tally.scripts.most_common()},
        normalization=dict(tally.changes.changes),
        problems=tally.problems,
        first_problems=tally.first_problems,
    )
