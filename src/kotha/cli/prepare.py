"""``kotha prepare``: documents to token shards."""

from pathlib import Path
from typing import Annotated, Any

from kotha.api.data import Duplicates
from kotha.cli.flags import Field, InLanguage, Json, OnErrors, Paths, TokenizerName, WorkPlace, flag
from kotha.cli.spoken import tell
from kotha.cli.terminal import problems_told, progress, show
from kotha.i18n.message import Message


def prepare(
    paths: Paths,
    /,
    *,
    tokenizer: TokenizerName,
    out: Annotated[Path, flag("The data folder to make.")],
    validation: Annotated[str, flag("Share of documents held out, or the file that holds them.")] = "0.05",
    seed: Annotated[int, flag("Which documents are held out.")] = 0,
    field: Field = "text",
    errors: OnErrors = "stop",
    duplicates: Annotated[Duplicates, flag("Copies to leave out: none, equal ones, also similar ones.")] = "exact",
    leaks: Annotated[
        bool, flag("Keep near-copies of validation documents out of training.", negative="--keep-leaks")
    ] = True,
    workers: Annotated[int | None, flag("Processes that encode; by default one a core.")] = None,
    on: WorkPlace = None,
    overwrite: Annotated[bool, flag("Replace a data folder that exists.")] = False,
    language: InLanguage = "en",
    as_json: Json = False,
) -> None:
    """Turn documents into token shards: split, cleaned, encoded, verified by hash."""
    from kotha.api.data import prepare as make
    from kotha.api.data import prepared_table, share_or_file

    how: dict[str, Any] = {"seed": seed, "field": field, "errors": errors, "duplicates": duplicates, "workers": workers}
    how |= {"on": on, "overwrite": overwrite, "validation": share_or_file(validation)}
    how |= {} if leaks else {"leak_threshold": None}
    with progress() as advance, problems_told() as problems:
        report = make(paths, tokenizer, out, on_progress=advance, on_problem=problems, **how)
    show(report, as_json, prepared_table(report, str(out)))
    if report.cut and not as_json:
        tell(Message("one document is most of the text, so its end is held out (in a .txt file blank lines part them)"))
    if not report.validation_documents and not as_json:
        tell(
            Message(
                "nothing is held out, so `kotha train` will refuse this folder: give two documents or "
                "more (in a .txt file blank lines part them), or a file with --validation FILE"
            )
        )
