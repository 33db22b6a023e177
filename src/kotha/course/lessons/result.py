"""What came of a lesson: conditions and their figures, seed by seed, a reading in words, a picture, texts.

It is kept as JSON has it, each text in both languages, so that a page made later says what was measured. A figure is
the mean over seeds; behind ± stands how far the farthest seed is from it.
"""

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kotha.i18n.catalogue import translate
from kotha.i18n.message import Text
from kotha.i18n.numbers import LANGUAGES, Language
from kotha.report.chart import HEIGHT, WIDTH, Chart, Series
from kotha.report.table import Table

COLOURS = ("accent", "warm", "soft", "ink")
# A line of a picture, and a text that a model wrote or was given, each with its title.
Line = tuple[Text, Sequence[tuple[float, float]]]
Sample = tuple[Text, str]


def both(text: Text) -> dict[str, str]:
    """A text in each language."""
    return {language: translate(text, language) for language in LANGUAGES}


@dataclass(frozen=True)
class Condition:
    """One way to build or teach a model: a row, with every seed's figures."""

    key: str
    title: Text
    figures: Mapping[str, Sequence[float]]

    def mean(self, key: str) -> float:
        """A figure over all seeds."""
        return statistics.fmean(self.figures[key])

    def spread(self, key: str) -> float:
        """How far the farthest seed is from the mean."""
        return max(abs(value - self.mean(key)) for value in self.figures[key])

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON, with the means beside what each seed gave."""
        means, spreads = ({key: count(key) for key in self.figures} for count in (self.mean, self.spread))
        kept = {"key": self.key, "title": both(self.title), "figures": dict(self.figures)}
        return {**kept, "means": means, "spreads": spreads}


@dataclass(frozen=True)
class LessonResult:
    """All of it."""

    plain: Mapping[str, Any]

    @property
    def conditions(self) -> list[Condition]:
        """The rows."""
        return [Condition(each["key"], each["title"]["en"], each["figures"]) for each in self.plain["conditions"]]

    def __getitem__(self, key: str) -> Condition:
        return next(each for each in self.conditions if each.key == key)

    def table(self, language: Language = "en") -> Table:
        """The figures, the best of each column marked."""
        figures, rows, marks = self.plain["figures"], self.conditions, {}
        for column, figure in enumerate(figures, 1):
            means = {n: row.mean(figure["key"]) for n, row in enumerate(rows) if figure["key"] in row.figures}
            if figure["better"] is not None and len(set(means.values())) > 1:
                choose = min if figure["better"] == "low" else max
                marks[choose(means, key=means.__getitem__), column] = "best"
        titles = [each["title"][language] for each in self.plain["conditions"]]
        cells = [[title, *(shown(row, each) for each in figures)] for title, row in zip(titles, rows, strict=True)]
        return Table("", ["", *(figure["title"][language] for figure in figures)], cells, marks=marks)

    def markdown(self, language: Language = "en") -> str:
        """The figures as a table of a document."""
        table = self.table(language)
        rows = [table.header, ["---"] * len(table.header), *table.cells]
        return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)

    def svg(self, language: Language = "en") -> str:
        """The picture, as a file that stands by itself."""
        drawn = self.plain["drawing"]
        lines = zip(drawn["lines"], COLOURS, strict=False)
        series = [Series(line["title"][language], line["points"], colour, dots=True) for line, colour in lines]
        title, x, y = (drawn[key][language] for key in ("title", "x", "y"))
        chart = Chart(title, x, y, series, from_zero=drawn["from_zero"])
        paper = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
        whole = chart.svg().replace("<svg ", head, 1).replace("</desc>", f"</desc>{paper}", 1)
        return re.sub(r"var\(--[a-z]+,\s*(#[0-9a-f]+)\)", r"\1", whole) + "\n"  # no page lends it colours


def shown(condition: Condition, figure: Mapping[str, Any]) -> str:
    """A figure as a table has it.

    >>> shown(Condition("a", "a", {"loss": [1.0, 1.2]}), {"key": "loss", "digits": 2, "percent": False})
    '1.10 ± 0.10'
    """
    key, scale, unit = figure["key"], *((100, " %") if figure["percent"] else (1, ""))
    if key not in condition.figures:
        return "—"
    mean, spread = (f"{scale * each:,.{figure['digits']}f}" for each in (condition.mean(key), condition.spread(key)))
    return f"{mean}{unit}" if not float(spread.replace(",", "")) else f"{mean} ± {spread}{unit}"
