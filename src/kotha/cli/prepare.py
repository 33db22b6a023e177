"""``kotha prepare``: documents to token shards."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from kotha.api.data import Duplicates
from kotha.cli.options import Field, OnErrors, Paths, TokenizerName, WorkPlace, group
from kotha.cli.terminal import Output, listening
from kotha.i18n.message import Message


@group
class Preparing:
    """What is read, and how."""

    seed: int = 0
    """Which documents are held out."""
    field: Field = "text"
    errors: OnErrors = "stop"
    duplicates: Duplicates = "exact"
    """Copies to leave out: none, equal ones, also similar ones."""
    workers: int | None = None
    """Processes that encode; by default one a core."""
    on: WorkPlace = None
    overwrite: bool = False
    """Replace a data folder that exists."""


def prepare(
    paths: Paths,
    /,
    *,
    tokenizer: TokenizerName,
    out: Path,
    validation: float | str = 0.05,
    leaks: Annotated[bool, Parameter(negative="--keep-leaks")] = True,
    preparing: Preparing = Preparing(),  # noqa: B008 - frozen
) -> Output:
    """Turn documents into token shards: split, cleaned, encoded, verified by hash.

    Args:
        out: The data folder to make.
        validation: Share of documents held out, or the file that holds them.
        leaks: Keep near-copies of validation documents out of training.
    """
    from kotha.api.data import prepare as make
    from kotha.api.data import prepared_table

    how: dict[str, Any] = {"validation": validation, **vars(preparing)}
    how |= {} if leaks else {"leak_threshold": None}
    with listening() as heard:
        report = make(paths, tokenizer, out, **heard, **how)
    remarks = []
    if report.cut:
        told = "one document is most of the text, so its end is held out (in a .txt file blank lines part them)"
        remarks.append(Message(told))
    if not report.validation_documents:
        remarks.append(
            Message(
                "nothing is held out, so `kotha train` will refuse this folder: give two documents or "
                "more (in a .txt file blank lines part them), or a file with --validation FILE"
            )
        )
    return Output(report, prepared_table(report, str(out)), remarks=remarks)
