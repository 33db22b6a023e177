"""A plan as one offline page: the tables, and the learning rate over the run."""

from collections.abc import Sequence

from kotha.cli.plan_tables import Table, has_sentences
from kotha.page import Page
from kotha.train.config import TrainConfig


def plan_page(
    title: str, tables: Sequence[Table], words: Sequence[str], settings: TrainConfig, commands: Sequence[str] = ()
) -> str:
    """The whole page as HTML."""
    from kotha.train.show.curves import schedule_chart

    page = Page(title, "What a training needs, before it starts.")
    for sentence in words:
        page.paragraph(sentence)
    page.heading("Learning rate")
    page.figure(*schedule_chart(settings))
    for name, header, rows in tables:
        page.heading(name[:1].upper() + name[1:])
        if has_sentences(rows):
            for *what, why in rows:
                page.paragraph(f"{', '.join(what)}: {why}.")
        else:
            page.table(header, rows, {})
    if commands:
        page.heading("To run it")
        page.story("\n".join(commands))
    return page.html("Made by kotha plan.")
