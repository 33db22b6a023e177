"""``kotha export``: a model goes to Hugging Face, llama.cpp or ONNX, and proves on the way that it is the same."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from kotha.cli.terminal import notes, print_json, results, table
from kotha.errors import KothaError, UsageError

if TYPE_CHECKING:
    from kotha.export.parity import ParityReport

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
        Literal["f32", "f16", "q8_0", "q4_0"] | None,
        Parameter(name="--type", help="For gguf: type of the weights; left out: f16."),
    ] = None,
    license_: Annotated[
        str | None, Parameter(name="--license", help="For hf: the licence that the card names.")
    ] = None,
    text: Text = (),
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write a model for other tools, and compare it there: logits, greedy text, token ids."""
    for flag, value, door in (("--dtype", dtype, "hf"), ("--license", license_, "hf"), ("--type", type_, "gguf")):
        if value is not None and door != to:
            raise UsageError(f"{flag} belongs to --to {door}, and this is --to {to}")
    from kotha.bundle import load
    from kotha.export.parity import lines_of
    from kotha.export.targets import ExportSettings
    from kotha.export.targets import export as export_model

    settings = ExportSettings(
        weights=dtype or type_, license=license_, run=run, lines=lines_of(text), overwrite=overwrite
    )
    with notes().status(f"writing {out} and comparing …"):
        report = export_model(load(run), to, out, settings)
    show({"to": to, "out": str(out)}, report, as_json)


def show(found: dict[str, Any], report: "ParityReport", as_json: bool) -> None:
    """Print what was done with its parity; a proof that failed is an error."""
    from kotha.export.parity import rows

    facts = {name: value for name in ("architecture", "weights") if (value := getattr(report, name)) is not None}
    if as_json:
        print_json({**found, **facts, "parity": report.to_dict()})
    else:
        console = results()
        console.print(f"{found['out']}: {', '.join(facts.values())}", markup=False)
        console.print(table("", ["parity", ""], rows(report)))
    if not report.passed:
        raise KothaError(f"{found['out']} is written, and its proof failed: {'; '.join(report.failures)}")
