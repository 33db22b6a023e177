"""Corpus statistics in one pass: sizes, duplicates, scripts, language share and problems.

Memory use is constant, except for a length and a hash per document (see ``ExactDuplicates``).
"""

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median_low
from typing import Any, Unpack

from kotha.text.clean.duplicates import ExactDuplicates
from kotha.text.clean.language import count_scripts, is_language
from kotha.text.corpus.documents import ReadOptions, read_documents
from kotha.text.corpus.problems import CorpusProblem
from kotha.text.corpus.sources import Source, list_sources
from kotha.text.normalize import Normalizer, count_words

_PROBLEMS_KEPT = 20


@dataclass
class CorpusReport:
    """Corpus statistics; sizes refer to the text of the documents, not to their files."""

    files: int = 0
    documents: int = 0
    bytes: int = 0
    characters: int = 0
    words: int = 0
    duplicates: int = 0  # documents equal to an earlier one, ignoring white space
    language: str = "bn"
    language_share: float = 0.0  # share of documents (not bytes) in the expected language
    shortest_characters: int = 0
    median_characters: int = 0  # the lower median
    longest_characters: int = 0
    script_shares: dict[str, float] = field(default_factory=dict)
    """Share of each script in all letters and signs, largest first."""
    normalization: dict[str, int] = field(default_factory=dict)
    """Number of changes that each default normalization rule would make to the text."""
    problems: int = 0
    first_problems: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON types."""
        return asdict(self)


def inspect_corpus(
    paths: Sequence[str | Path | Source], *, field: str = "text", language: str = "bn", **options: Unpack[ReadOptions]
) -> CorpusReport:
    """Read a corpus once and return its statistics; ``errors`` defaults to "skip" here."""
    report = CorpusReport(language=language)
    on_problem = options.get("on_problem")

    def note(problem: CorpusProblem) -> None:
        report.problems += 1
        if report.problems <= _PROBLEMS_KEPT:
            report.first_problems.append(str(problem))
        if on_problem is not None:
            on_problem(problem)

    options = {"errors": "skip", **options, "on_problem": note}
    sources = list_sources(paths, errors=options["errors"], on_problem=note)
    report.files = len(sources)
    seen, normalizer, changes = ExactDuplicates(), Normalizer(), Counter[str]()
    lengths = array("I")
    scripts: Counter[str] = Counter()
    in_language = 0
    for text in (document.text for document in read_documents(sources, field=field, **options)):
        lengths.append(len(text))
        report.bytes += len(text.encode())
        report.words += count_words(normalizer(text, changes))
        report.duplicates += not seen.is_new(text)
        scripts.update(count_scripts(text))
        in_language += is_language(text, language)
    if lengths:
        report.documents, report.characters = len(lengths), sum(lengths)
        report.shortest_characters, report.longest_characters = min(lengths), max(lengths)
        report.median_characters = median_low(lengths)
    report.language_share = in_language / max(1, report.documents)
    report.script_shares = {script: count / max(1, scripts.total()) for script, count in scripts.most_common()}
    report.normalization = dict(changes)
    return report
