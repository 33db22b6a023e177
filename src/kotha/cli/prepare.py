"""``kotha prepare``: documents to token shards."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from kotha.cli.terminal import Problems, print_json, progress, results, table
from kotha.errors import UsageError
from kotha.text.clean.duplicates import DEFAULT_THRESHOLD
from kotha.text.corpus.problems import Errors
from kotha.text.prepare import Duplicates


def prepare(
    paths: Annotated[tuple[str, ...], Parameter(help="Files, folders, globs, - or hf:owner/name.")],
    /,
    *,
    tokenizer: Annotated[str, Parameter(help="A tokenizer: file, folder, or hub name.")],
    out: Annotated[Path, Parameter(help="The data folder to make.")],
    validation: Annotated[str, Parameter(help="Share of documents held out, or the file that holds them.")] = "0.05",
    seed: Annotated[int, Parameter(help="Which documents are held out.")] = 0,
    field: Annotated[str, Parameter(help="Field or column that holds the text.")] = "text",
    errors: Annotated[Errors, Parameter(help="What happens to a document that cannot be read.")] = "stop",
    duplicates: Annotated[
        Duplicates, Parameter(help="Copies to leave out: none, equal ones, also similar ones.")
    ] = "exact",
    leaks: Annotated[
        bool, Parameter(help="Keep near-copies of validation documents out of training.", negative="--keep-leaks")
    ] = True,
    workers: Annotated[int | None, Parameter(help="Processes that encode; by default one a core.")] = None,
    overwrite: Annotated[bool, Parameter(help="Replace a data folder that exists.", negative="")] = False,
    as_json: Annotated[bool, Parameter(name="--json", negative="", help="One JSON object on stdout.")] = False,
) -> None:
    """Turn documents into token shards: split, cleaned, encoded, verified by hash."""
    import kotha

    problems = Problems()
    with progress() as advance:
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
            overwrite=overwrite,
            leak_threshold=DEFAULT_THRESHOLD if leaks else None,
        )
    problems.summarize()
    if as_json:
        print_json(report)
        return
    rows = [
        ["documents", f"{report.train_documents:,}", f"{report.validation_documents:,}"],
        ["tokens", f"{report.train_tokens:,}", f"{report.validation_tokens:,}"],
        ["bytes", f"{report.train_bytes:,}", f"{report.validation_bytes:,}"],
    ]
    console = results()
    console.print(table(str(out), ["", "train", "validation"], rows))
    left_out = {
        "duplicates": report.duplicates,
        "near-copies of validation documents": report.leaked,
        "unreadable": report.problems,
    }
    told = [f"{count:,} {name}" for name, count in left_out.items() if count]
    console.print("left out: " + (", ".join(told) or "nothing"))


def _validation(value: str) -> float | str:
    try:
        return float(value)
    except ValueError:
        if not Path(value).exists():
            raise UsageError(f"--validation {value}: neither a share such as 0.05 nor a file that exists") from None
        return value
