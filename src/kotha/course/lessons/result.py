"""What came of a lesson: conditions and their figures, seed by seed, a reading in words, a picture, texts.

It goes into a JSON file whole and comes back from it, so that a page made later says what was measured. A figure is
the mean over seeds; behind ± stands how far the farthest seed is from it.
"""

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal

from kotha.i18n.catalogue import translate
from kotha.i18n.message import Bilingual
from kotha.i18n.numbers import LANGUAGES, Language
from kotha.report.chart import HEIGHT, WIDTH, Chart, Series
from kotha.report.table import Table

COLOURS = ("accent", "warm", "soft", "ink")


@dataclass(frozen=True)
class Figure:
    """What is measured of every condition: a column."""

    key: str
    title: Bilingual
    digits: int = 2
    better: Literal["low", "high"] | None = "low"
    percent: bool = False


@dataclass(frozen=True)
class Condition:
    """One way to build or teach a model: a row, with every seed's figures."""

    key: str
    title: Bilingual
    figures: Mapping[str, Sequence[float]]

    def mean(self, key: str) -> float:
        """A figure over all seeds."""
        return statistics.fmean(self.figures[key])

    def spread(self, key: str) -> float:
        """How far the farthest seed is from the mean."""
        return max(abs(value - self.mean(key)) for value in self.figures[key])


@dataclass(frozen=True)
class Line:
    """A line of the picture."""

    title: Bilingual
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Drawing:
    """The picture of a lesson, before it has a language."""

    title: Bilingual
    x: Bilingual
    y: Bilingual
    lines: Sequence[Line]
    from_zero: bool = False


@dataclass(frozen=True)
class Sample:
    """A text that a model wrote or was given."""

    title: Bilingual
    text: str


@dataclass(frozen=True)
class LessonResult:
    """All of it."""

    lesson: str
    figures: Sequence[Figure]
    conditions: Sequence[Condition]
    reading: Sequence[Bilingual]
    drawing: Drawing
    samples: Sequence[Sample] = ()
    about: Mapping[str, Any] = field(default_factory=dict)  # sizes, seeds, machine: whatever else is to be kept

    def __getitem__(self, key: str) -> Condition:
        return next(each for each in self.conditions if each.key == key)

    def table(self, language: Language = "en") -> Table:
        """The figures, the best of each column marked."""
        header = ["", *(translate(figure.title, language) for figure in self.figures)]
        figures = self.figures
        cells = [[translate(row.title, language), *(shown(row, each) for each in figures)] for row in self.conditions]
        return Table("", header, cells, marks=self._marks())

    def _marks(self) -> dict[tuple[int, int], str]:
        marks = {}
        for column, figure in enumerate(self.figures, 1):
            means = [each.mean(figure.key) if figure.key in each.figures else None for each in self.conditions]
            known = [mean for mean in means if mean is not None]
            if figure.better is not None and len(set(known)) > 1:
                marks[means.index(min(known) if figure.better == "low" else max(known)), column] = "best"
        return marks

    def markdown(self, language: Language = "en") -> str:
        """The figures as a table of a document."""
        table = self.table(language)
        rows = [table.header, ["---"] * len(table.header), *table.cells]
        return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)

    def svg(self, language: Language = "en") -> str:
        """The picture, as a file that stands by itself."""
        drawn = self.drawing
        lines = zip(drawn.lines, COLOURS, strict=False)
        series = [Series(translate(line.title, language), line.points, colour, dots=True) for line, colour in lines]
        title, x, y = (translate(each, language) for each in (drawn.title, drawn.x, drawn.y))
        chart = Chart(title, x, y, series, from_zero=drawn.from_zero)
        paper = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
        whole = chart.svg().replace("<svg ", head, 1).replace("</desc>", f"</desc>{paper}", 1)
        return re.sub(r"var\(--[a-z]+,\s*(#[0-9a-f]+)\)", r"\1", whole) + "\n"  # no page lends it colours

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON, each text in both languages, with the means beside what each seed gave."""
        plain: dict[str, Any] = _plain(self)
        for condition, row in zip(self.conditions, plain["conditions"], strict=True):
            row["means"] = {key: condition.mean(key) for key in condition.figures}
            row["spreads"] = {key: condition.spread(key) for key in condition.figures}
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "LessonResult":
        """What ``to_dict`` gave, as it was."""
        drawn = plain["drawing"]
        texts = {key: _both(drawn[key]) for key in ("title", "x", "y")}
        lines = [Line(_both(line["title"]), [(x, y) for x, y in line["points"]]) for line in drawn["lines"]]
        return cls(
            plain["lesson"],
            [Figure(**{**each, "title": _both(each["title"])}) for each in plain["figures"]],
            [Condition(each["key"], _both(each["title"]), each["figures"]) for each in plain["conditions"]],
            [_both(each) for each in plain["reading"]],
            Drawing(**texts, lines=lines, from_zero=drawn["from_zero"]),
            [Sample(_both(each["title"]), each["text"]) for each in plain["samples"]],
            plain["about"],
        )


def _plain(value: Any) -> Any:
    """A value as JSON has it; a text in both languages."""
    if isinstance(value, Bilingual):
        return {language: translate(value, language) for language in LANGUAGES}
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _both(plain: Mapping[str, str]) -> Bilingual:
    return Bilingual(plain["en"], plain["bn"])


def shown(condition: Condition, figure: Figure) -> str:
    """A figure as a table has it.

    >>> row = Condition("a", Bilingual("a", "ক"), {"loss": [1.0, 1.2]})
    >>> shown(row, Figure("loss", Bilingual("loss", "লস")))
    '1.10 ± 0.10'
    """
    if figure.key not in condition.figures:
        return "—"
    scale, digits = (100, figure.digits) if figure.percent else (1, figure.digits)
    mean, spread = (
        f"{scale * each:,.{digits}f}" for each in (condition.mean(figure.key), condition.spread(figure.key))
    )
    unit = " %" if figure.percent else ""
    return f"{mean}{unit}" if not float(spread.replace(",", "")) else f"{mean} ± {spread}{unit}"


def below(one: Condition, other: Condition, key: str) -> bool:
    """Whether every seed has a smaller figure under one condition than under the other."""
    return all(a < b for a, b in zip(one.figures[key], other.figures[key], strict=True))
