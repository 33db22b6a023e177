"""A table: one form for the terminal, a page and a notebook."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from kotha.i18n.message import Text
from kotha.report.page import escape


@dataclass(frozen=True)
class Table:
    """Cells under their names, and what must be said below them."""

    title: Text
    header: Sequence[Text]
    cells: Sequence[Sequence[Text]]  # a string is a name or a figure and stays as it is, a message is translated
    remarks: Sequence[Text] = ()
    marks: dict[tuple[int, int], str] = field(default_factory=dict)  # cells (row, column) that stand out: best, words
    labels: Sequence[int] = ()  # columns whose cells are words of ours, and no names

    def html(self) -> str:
        """As a notebook shows it, in its own letters and colours."""
        head = "".join(f"<th>{escape(str(cell))}</th>" for cell in self.header)
        rows = ["".join(f"<td>{escape(str(cell))}</td>" for cell in cells) for cells in self.cells]
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        title, remarks = escape(str(self.title)), "".join(f"<p>{escape(str(each))}</p>" for each in self.remarks)
        caption = f"<caption>{title}</caption>" if title else ""
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{remarks}"
