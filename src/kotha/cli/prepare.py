"""``kotha prepare``: convert documents to token shards."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from kotha.api.data import Duplicates
from kotha.cli.options import Field, OnErrors, Paths, TokenizerName, WorkPlace, group
from kotha.cli.terminal import Output, corpus_listeners
from kotha.i18n.message import Message


@group
class PrepareCommandOptions:
    """Options for reading and encoding documents."""

    seed: int = 0
    """Random seed for the choice of held-out documents."""
    field: Field = "text"
    errors: OnErrors = "stop"
    duplicates: Duplicates = "exact"
    """Duplicates to remove: none, exact copies only, or near-duplicates as well."""
    workers: int | None = None
    """Number of processes that encode (default: one per core)."""
    on: WorkPlace = None
    overwrite: bool = False
    """Replace an existing data folder."""


def prepare(
    paths: Paths,
    /,
    *,
    tokenizer: TokenizerName,
    out: Path,
    validation: float | str = 0.05,
    leaks: Annotated[bool, Parameter(negative="--keep-leaks")] = True,
    options: PrepareCommandOptions = PrepareCommandOptions(),  # noqa: B008 - frozen
) -> Output:
    """Turn documents into a data folder for `kotha train`: split, tokenize and write token shards.

    Exact duplicates are removed, and a share of the documents is held out for validation. The folder contains the
    shards of both splits, a copy of the tokenizer, and dataset.json with sizes and hashes.

    Example: `kotha prepare texts --tokenizer tok --out data`

    Args:
        out: Data folder to create.
        validation: Share of documents to hold out, or a file of held-out documents.
        leaks: Remove near-duplicates of validation documents from the training data.
    """
    from kotha.api.data import prepare as make
    from kotha.api.data import prepared_table

    arguments: dict[str, Any] = {"validation": validation, **vars(options)}
    arguments |= {} if leaks else {"leak_threshold": None}
    with corpus_listeners() as listeners:
        report = make(paths, tokenizer, out, **listeners, **arguments)
    remarks = []
    if report.cut:
        template = (
            "one document makes up most of the text, so its end is held out (in a .txt file, blank lines separate "
            "documents)"
        )
        remarks.append(Message(template))
    if not report.validation_documents:
        remarks.append(
            Message(
                "no document is held out, so `kotha train` will reject this folder; give two or more "
                "documents (in a .txt file, blank lines separate them), or use --validation FILE"
            )
        )
    return Output(report, prepared_table(report, str(out)), remarks=remarks)
