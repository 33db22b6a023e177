"""Tables for terminals, pages and notebooks."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from kotha.i18n.message import Text
from kotha.report.page import escape


@dataclass(frozen=True)
class Table:
    """A table with a header, cells, and remarks below it."""

    title: Text
    header: Sequence[Text]
    cells: Sequence[Sequence[Text]]  # messages are translated, strings are not
    remarks: Sequence[Text] = ()
    marks: dict[tuple[int, int], str] = field(default_factory=dict)  # style of cells by (row, column): best, words
    labels: Sequence[int] = ()  # columns whose cells are labels, not names

    def html(self) -> str:
        """Return the table as HTML for a notebook."""
        head = "".join(f"<th>{escape(str(cell))}</th>" for cell in self.header)
        rows = ["".join(f"<td>{escape(str(cell))}</td>" for cell in cells) for cells in self.cells]
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        title, remarks = escape(str(self.title)), "".join(f"<p>{escape(str(each))}</p>" for each in self.remarks)
        caption = f"<caption>{title}</caption>" if title else ""
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{remarks}"
