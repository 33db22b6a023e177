"""``kotha export`` and ``kotha import``: a model goes out to other programs, or comes in from them.

On either way it proves that it is the same.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from kotha.cli.flags import BOX, Json, Run, flag
from kotha.cli.spoken import said
from kotha.cli.terminal import Table, notes, show
from kotha.errors import KothaError, UsageError
from kotha.i18n.message import Message

if TYPE_CHECKING:
    from kotha.api.transfer import ParityReport

Text = Annotated[tuple[str, ...], flag("Text whose lines are compared; left out: stories.", show_default=False)]
Overwrite = Annotated[bool, flag("Replace what was written there before.")]


def export(
    run: Run = BOX,
    /,
    *,
    to: Annotated[
        Literal["hf", "gguf", "onnx", "web"], flag("Hugging Face's folder, llama.cpp's file, ONNX, or a web page.")
    ],
    out: Annotated[Path, flag("Folder to write; or a file, for gguf .gguf, for web .html.")],
    dtype: Annotated[
        Literal["float32", "bfloat16", "float16"] | None, flag("For hf: type of the weights; left out: float32.")
    ] = None,
    type_: Annotated[
        Literal["f32", "f16", "q8_0", "q4_0"] | None,
        flag("For gguf: type of the weights; left out: f16.", name="--type"),
    ] = None,
    license_: Annotated[str | None, flag("For hf: the licence that the card names.", name="--license")] = None,
    text: Text = (),
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write a model for other tools, and compare it there: logits and token ids."""
    for name, value, door in (("--dtype", dtype, "hf"), ("--license", license_, "hf"), ("--type", type_, "gguf")):
        if value is not None and door != to:
            raise UsageError("{name} belongs to --to {door}, and this is --to {to}", name=name, door=door, to=to)
    import kotha
    from kotha.api.transfer import lines_of

    how: Any = {"weights": dtype or type_, "license": license_, "lines": lines_of(text), "overwrite": overwrite}
    with notes().status(said(Message("writing {out} and comparing …", out=out))):
        report = kotha.load(run, "cpu").export(to, out, **how)
    _show({"to": to, "out": str(out)}, report, as_json)


def import_(
    folder: Annotated[Path, flag("A Hugging Face folder: GPT-2, Qwen3, Llama, BERT, Marian or ViT.")],
    /,
    *,
    out: Annotated[Path, flag("Model folder to write.")],
    tokenizer: Annotated[bool, flag("Bring the tokenizer along.", negative="--no-tokenizer")] = True,
    text: Text = (),
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Open a model from elsewhere, and compare it with transformers: logits and token ids."""
    from kotha.api.transfer import import_model, lines_of

    how: Any = {"with_tokenizer": tokenizer, "lines": lines_of(text), "overwrite": overwrite}
    with notes().status(said(Message("reading {folder} …", folder=folder))):
        found, report = import_model(folder, out, **how)
    parameters = sum(parameter.numel() for parameter in found.bundle.model.parameters())
    _show({"out": str(out), "parameters": parameters}, report, as_json)


def _show(found: dict[str, Any], report: "ParityReport", as_json: bool) -> None:
    """Print what was done with its parity; a proof that failed is an error."""
    from kotha.api.transfer import parity_rows

    facts = {name: value for name in ("architecture", "weights") if (value := getattr(report, name)) is not None}
    title = f"{found['out']}: {', '.join(facts.values())}"
    show(
        {**found, **facts, "parity": report.to_dict()},
        as_json,
        title,
        Table("", [Message("parity"), ""], parity_rows(report)),
    )
    if not report.passed:
        raise KothaError(
            "{out} is written, and its proof failed: {failures}", out=found["out"], failures=report.failures
        )
