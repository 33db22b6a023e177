"""The result of a lesson: conditions with their figures for each seed, conclusions, a plot and texts.

A result is stored as JSON with each text in both languages, so that a page can be made from it later. Each figure is
the mean over all seeds; the number after ± is the largest deviation of a seed from this mean.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kotha.course.data import both
from kotha.i18n.message import Text
from kotha.i18n.numbers import Language
from kotha.report.drawing import lines
from kotha.report.table import Table

# A line of a plot; and a condition (one way to build or train a model) as JSON.
Line = Sequence[tuple[float, float]]
Row = Mapping[str, Any]


def row_of(key: str, title: Text, figures: Mapping[str, Sequence[float]]) -> Row:
    """Build a condition: the figures of each seed, their means, and the largest deviations from them."""
    means = {name: statistics.fmean(values) for name, values in figures.items()}
    spreads = {name: max(abs(value - means[name]) for value in values) for name, values in figures.items()}
    return {"key": key, "title": both(title), "figures": figures, "means": means, "spreads": spreads}


@dataclass(frozen=True)
class LessonResult:
    """The result of a lesson."""

    plain: Mapping[str, Any]

    @property
    def rows(self) -> dict[str, Row]:
        """The conditions by key."""
        return {row["key"]: row for row in self.plain["conditions"]}

    def table(self, language: Language = "en") -> Table:
        """Return the figures as a table, with the best one in each column marked."""
        figures, rows, marks = self.plain["figures"], self.plain["conditions"], {}
        for column, figure in enumerate(figures, 1):
            means = {n: row["means"][figure["key"]] for n, row in enumerate(rows) if figure["key"] in row["means"]}
            if figure["better"] is not None and len(set(means.values())) > 1:
                choose = min if figure["better"] == "low" else max
                marks[choose(means, key=means.__getitem__), column] = "best"
        cells = [[row["title"][language], *(shown(row, each) for each in figures)] for row in rows]
        return Table("", ["", *(figure["title"][language] for figure in figures)], cells, marks=marks)

    def markdown(self, language: Language = "en") -> str:
        """Return the figures as a Markdown table."""
        table = self.table(language)
        rows = [table.header, ["---"] * len(table.header), *table.cells]
        return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)

    def svg(self, language: Language = "en") -> str:
        """Return the plot as a standalone SVG."""
        drawn = self.plain["drawing"]
        series = {line["title"][language]: line["points"] for line in drawn["lines"]}
        title, x, y = (drawn[key][language] for key in ("title", "x", "y"))
        return lines(series, x=x, y=y, title=title, from_zero=drawn["from_zero"]).svg()


def shown(row: Row, figure: Mapping[str, Any]) -> str:
    """Format a figure for a table.

    >>> shown(row_of("a", "a", {"loss": [1.0, 1.2]}), {"key": "loss", "digits": 2, "percent": False})
    '1.10 ± 0.10'
    """
    key, scale, unit = figure["key"], *((100, " %") if figure["percent"] else (1, ""))
    if key not in row["figures"]:
        return "—"
    mean, spread = (f"{scale * row[name][key]:,.{figure['digits']}f}" for name in ("means", "spreads"))
    return f"{mean}{unit}" if not float(spread.replace(",", "")) else f"{mean} ± {spread}{unit}"
