"""``kotha export`` and ``kotha import``: export a model to other formats, or import one from Hugging Face.

Both commands verify that the outputs of the two models match.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from kotha.cli.options import BOX, Run
from kotha.cli.terminal import Output, Table, status
from kotha.errors import KothaError
from kotha.i18n.message import Message

if TYPE_CHECKING:
    from kotha.api.conversion import ParityReport

Lines = Annotated[tuple[str, ...], Parameter(help="Text whose lines are compared (default: the built-in stories).")]
Overwrite = Annotated[bool, Parameter(help="Replace existing output.")]


def export(
    run: Run = BOX,
    /,
    *,
    to: Literal["hf", "gguf", "onnx", "web"],
    out: Path,
    type_: Annotated[str | None, Parameter(name="--type")] = None,
    license_: Annotated[str | None, Parameter(name="--license")] = None,
    text: Lines = (),
    overwrite: Overwrite = False,
) -> Output:
    """Export a model for other programs, and verify that logits and token ids match.

    The outputs of the exported model and the original are compared on a few lines; the exit code is 1 if they differ.

    Examples: `kotha export run --to hf --out run-hf`, `kotha export run --to gguf --out run.gguf --type q8_0`.

    Args:
        to: Export format: Hugging Face folder, llama.cpp file, ONNX, or web page.
        out: Output folder; for gguf a .gguf file, for web an .html file.
        type_: Data type of the weights: for hf float32, bfloat16 or float16; for gguf f32, f16, q8_0 or q4_0.
        license_: Licence named in the model card (hf only).
    """
    import kotha
    from kotha.api.requirements import require_for_export

    require_for_export(to)  # before torch is imported
    from kotha.api.conversion import lines_of

    options: Any = {"weights": type_, "license": license_, "lines": lines_of(text), "overwrite": overwrite}
    with status(Message("writing {out} and comparing …", out=out)):
        report = kotha.load(run, "cpu").export(to, out, **options)
    return _verified({"to": to, "out": str(out)}, report)


def import_(
    folder: Path,
    /,
    *,
    out: Path,
    tokenizer: Annotated[bool, Parameter(negative="--no-tokenizer")] = True,
    text: Lines = (),
    overwrite: Overwrite = False,
) -> Output:
    """Import a model from a Hugging Face folder, and verify that logits and token ids match those of transformers.

    Example: `kotha import folder --out model`

    Args:
        folder: Hugging Face folder: GPT-2, Qwen3, Llama, BERT, Marian or ViT.
        out: Model folder to write.
        tokenizer: Also import the tokenizer.
    """
    from kotha.api.conversion import import_model, lines_of

    options: Any = {"with_tokenizer": tokenizer, "lines": lines_of(text), "overwrite": overwrite}
    with status(Message("reading {folder} …", folder=folder)):
        found, report = import_model(folder, out, **options)
    parameters = sum(parameter.numel() for parameter in found.bundle.model.parameters())
    return _verified({"out": str(out), "parameters": parameters}, report)


def _verified(found: dict[str, Any], report: "ParityReport") -> Output:
    """Return the result with its parity report, and with an error if verification failed."""
    from kotha.api.conversion import parity_rows

    out, error = found["out"], None
    if not report.passed:
        error = KothaError("{out} was written, but verification failed: {failures}", out=out, failures=report.failures)
    facts = {name: value for name in ("architecture", "weights") if (value := getattr(report, name)) is not None}
    table = Table("", [Message("parity"), ""], parity_rows(report))
    result = {**found, **facts, "parity": report.to_dict()}
    return Output(result, f"{out}: {', '.join(facts.values())}", table, error=error)
