"""A table: one form for the terminal, a page and a notebook."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from kotha.i18n.message import Text
from kotha.report.page import Page, framed


@dataclass(frozen=True)
class Table:
    """Cells under their names, and what must be said below them."""

    title: Text
    header: Sequence[Text]
    cells: Sequence[Sequence[Text]]  # a string is a name or a figure and stays as it is, a message is translated
    remarks: Sequence[Text] = ()
    marks: dict[tuple[int, int], str] = field(default_factory=dict)  # cells (row, column) that stand out: best
    labels: Sequence[int] = ()  # columns whose cells are words of ours, and no names

    def page(self) -> str:
        """One offline page."""
        page = Page(self.title)
        page.table(self.header, self.cells, self.marks, self.labels)
        for remark in self.remarks:
            page.note(remark)
        return page.html()

    def framed(self) -> str:
        """The page as a notebook shows it."""
        return framed(self.page(), str(self.title))
