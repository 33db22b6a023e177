"""``kotha prepare``: documents to token shards."""

from pathlib import Path
from typing import Annotated

from kotha.cli.flags import Field, InLanguage, Json, OnErrors, Paths, TokenizerName, WorkPlace, flag
from kotha.cli.spoken import said, tell
from kotha.cli.terminal import print_json, problems_told, progress, results, table
from kotha.errors import UsageError
from kotha.i18n.message import Message, Text
from kotha.storage.status import is_there
from kotha.text.clean.duplicates import Duplicates
from kotha.text.clean.leakage import DEFAULT_THRESHOLD
from kotha.text.corpus.remote import is_remote


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
    import kotha

    with progress() as advance, problems_told() as problems:
        report = kotha.prepare(
            paths,
            tokenizer,
            out,
            on_progress=advance,
            on_problem=problems,
            validation=_validation(validation),
            seed=seed,
            field=field,
            errors=errors,
            duplicates=duplicates,
            workers=workers,
            on=on,
            overwrite=overwrite,
            leak_threshold=DEFAULT_THRESHOLD if leaks else None,
        )
    if as_json:
        print_json(report)
        return
    rows: list[list[Text]] = [
        [Message("documents"), f"{report.train_documents:,}", f"{report.validation_documents:,}"],
        [Message("tokens"), f"{report.train_tokens:,}", f"{report.validation_tokens:,}"],
        [Message("bytes"), f"{report.train_bytes:,}", f"{report.validation_bytes:,}"],
    ]
    console = results()
    console.print(table(str(out), ["", Message("train"), Message("validation")], rows))
    left_out = (
        Message("{n:,} duplicates", n=report.duplicates),
        Message("{n:,} near-copies of validation documents", n=report.leaked),
        Message("{n:,} unreadable", n=report.problems),
    )
    told = [each for each in left_out if each.values["n"]]
    console.print(said(Message("left out: {what}", what=told or Message("nothing"))))
    if report.cut:
        tell(Message("one document is most of the text, so its end is held out (in a .txt file blank lines part them)"))
    if not report.validation_documents:
        tell(
            Message(
                "nothing is held out, so `kotha train` will refuse this folder: give two documents or "
                "more (in a .txt file blank lines part them), or a file with --validation FILE"
            )
        )


def _validation(value: str) -> float | str:
    try:
        return float(value)
    except ValueError:
        if not is_remote(value) and not is_there(Path(value)):
            raise UsageError(
                "--validation {value}: neither a share such as 0.05 nor a file that exists", value=value
            ) from None
        return value
