"""``kotha export``: a model goes to Hugging Face, llama.cpp or ONNX, and proves on the way that it is the same."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from kotha.cli.terminal import notes, print_json, results, table
from kotha.errors import KothaError, UsageError, nearest

if TYPE_CHECKING:
    from kotha.bundle import Bundle
    from kotha.export.parity import ParityReport

# As many lines of a text as tokens are compared on.
_MOST_LINES = 1000

Text = Annotated[
    tuple[str, ...],
    Parameter(help="Text whose lines are compared; left out: stories.", negative="", show_default=False),
]
Json = Annotated[bool, Parameter(name="--json", negative="", help="One JSON object on stdout.")]
Overwrite = Annotated[bool, Parameter(negative="", help="Replace what was written there before.")]


def export(
    run: Annotated[Path, Parameter(help="A run folder (its best model), or a model folder.")],
    /,
    *,
    to: Annotated[Literal["hf", "gguf", "onnx"], Parameter(help="Hugging Face's folder, llama.cpp's file, or ONNX.")],
    out: Annotated[Path, Parameter(help="Folder to write; for gguf, or a file that ends in .gguf.")],
    dtype: Annotated[
        Literal["float32", "bfloat16", "float16"] | None,
        Parameter(help="For hf: type of the weights; left out: float32."),
    ] = None,
    type_: Annotated[
        str | None, Parameter(name="--type", help="For gguf: f32, f16, q8_0 or q4_0; left out: f16.")
    ] = None,
    license_: Annotated[
        str | None, Parameter(name="--license", help="For hf: the licence that the card names.")
    ] = None,
    text: Text = (),
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write a model for other tools, and compare it there: logits, greedy text, token ids."""
    _refuse_strangers(to, {"--dtype": (dtype, "hf"), "--license": (license_, "hf"), "--type": (type_, "gguf")})
    lines = read_lines(text)
    from kotha.bundle import load

    bundle = load(run)
    with notes().status(f"writing {out} and comparing …"):
        if to == "hf":
            found = _to_hf(bundle, run, out, lines, dtype or "float32", license_, overwrite)
        elif to == "gguf":
            found = _to_gguf(bundle.widened(), out, lines, type_, overwrite)
        else:
            from kotha.export.onnx.export import export_onnx

            found = {"parity": export_onnx(bundle.widened(), out, lines=lines, overwrite=overwrite)}
    show({"to": to, "out": str(out), **found}, as_json)


def _refuse_strangers(to: str, flags: dict[str, tuple[object, str]]) -> None:
    for flag, (value, door) in flags.items():
        if value is not None and door != to:
            raise UsageError(f"{flag} belongs to --to {door}, and this is --to {to}")


def _to_hf(
    bundle: "Bundle",
    run: Path,
    out: Path,
    lines: Sequence[str] | None,
    dtype: Any,
    license: str | None,
    overwrite: bool,
) -> dict[str, Any]:
    import torch

    from kotha.bundle import Bundle
    from kotha.export.card import About
    from kotha.export.huggingface.check import check_hf
    from kotha.export.huggingface.export import Wishes, export_hf
    from kotha.export.parity import ParityReport

    wishes = Wishes(dtype=dtype, chat=_takes_turns(bundle), license=license, overwrite=overwrite)
    layout = export_hf(bundle, out, About.of(run), wishes)
    was = next(bundle.model.parameters()).dtype
    rounded = Bundle(bundle.model.to(getattr(torch, dtype)), bundle.tokenizer)
    try:
        report = check_hf(out, rounded, layout, lines)
    except KothaError as error:  # the folder is there by now
        report = ParityReport(door="hf", refused=str(error))
    if getattr(torch, dtype).itemsize < was.itemsize:
        remark = f"the weights were rounded to {dtype} on their way out, and are compared as rounded"
        report = replace(report, remark="; ".join(filter(None, [report.remark, remark])))
    return {"architecture": layout.architecture, "dtype": dtype, "chat": wishes.chat, "parity": report}


def _takes_turns(bundle: "Bundle") -> bool:
    from kotha.generate.conversation import was_taught
    from kotha.generate.engine import Engine
    from kotha.model.gpt import GPT

    return isinstance(bundle.model, GPT) and was_taught(Engine(bundle.model, bundle.tokenizer, max_batch=1))


def _to_gguf(
    bundle: "Bundle", out: Path, lines: Sequence[str] | None, kind: str | None, overwrite: bool
) -> dict[str, Any]:
    from kotha.export.gguf.export import KINDS, export_gguf

    kind = "f16" if kind is None else kind
    if kind not in KINDS:
        raise UsageError(f"--type {kind} is not a type of GGUF files{nearest(kind, KINDS)}")
    return {"type": kind, "parity": export_gguf(bundle, out, kind=kind, lines=lines, overwrite=overwrite)}


def read_lines(paths: tuple[str, ...]) -> list[str] | None:
    """The lines to compare tokens on: awkward ones, then those of a text; None where no text was named."""
    if not paths:
        return None
    from itertools import islice

    from kotha.export.parity import AWKWARD_LINES
    from kotha.text.corpus.documents import read_documents

    found = (line for document in read_documents(paths) for line in document.text.splitlines() if line.strip())
    lines = list(islice(found, _MOST_LINES))
    if not lines:
        raise UsageError(f"--text {' '.join(paths)}: no lines there")
    return [*AWKWARD_LINES, *lines]


def show(found: dict[str, Any], as_json: bool) -> None:
    """Print what was done with its parity; a proof that failed is an error."""
    from kotha.export.parity import rows

    report: ParityReport = found["parity"]
    if as_json:
        print_json({**found, "parity": report.to_dict()})
    else:
        console = results()
        facts = ", ".join(f"{value}" for key, value in found.items() if key in ("architecture", "dtype", "type"))
        console.print(f"{found['out']}: {facts or found.get('to', '')}", markup=False)
        console.print(table("", ["parity", ""], rows(report)))
    if not report.passed:
        raise KothaError(f"{found['out']} is written, and its proof failed: {'; '.join(report.failures)}")
