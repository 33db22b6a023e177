"""``kotha index``: documents to an index that can be asked."""

from typing import Annotated

from kotha.cli.flags import Field, InLanguage, Json, OnErrors, Paths, flag
from kotha.cli.spoken import said
from kotha.cli.terminal import print_json, problems_told, progress, results, table
from kotha.i18n.message import Message, Text


def index(
    paths: Paths,
    /,
    *,
    out: Annotated[str, flag("The index to make or to bring up to date: a file, or qdrant:URL/NAME.")],
    model: Annotated[str | None, flag("A model whose embeddings are kept too; left out, words alone.")] = None,
    letters: Annotated[int, flag("Letters of a passage at most.")] = 600,
    field: Field = "text",
    errors: OnErrors = "stop",
    language: InLanguage = "en",
    as_json: Json = False,
) -> None:
    """Cut documents (txt, md, html, pdf, jsonl, csv, tsv, parquet) into passages, and index them for `kotha ask`."""
    import kotha

    with progress() as advance, problems_told() as problems:
        opened = kotha.Index(out, model)
        how = {"letters": letters, "field": field, "errors": errors}
        report = opened.update(paths, on_progress=advance, on_problem=problems, **how)
    if as_json:
        print_json(report)
        return
    rows: list[list[Text]] = [
        [Message("sources"), f"{report.sources:,}"],
        [Message("documents"), f"{report.documents:,}"],
        [Message("passages"), f"{report.passages:,}"],
    ]
    changes = (
        Message("{n:,} added", n=report.added),
        Message("{n:,} unchanged", n=report.unchanged),
        Message("{n:,} removed", n=report.removed),
    )
    done = [each for each in changes if each.values["n"]]
    console = results()
    console.print(table(out, ["", ""], rows))
    console.print(said(Message("documents: {done}", done=done or Message("none"))), markup=False)
