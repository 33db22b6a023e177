"""``kotha import``: a model from Hugging Face opens here, and proves that it is the same."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from kotha.cli.export import Json, Overwrite, Text, show
from kotha.cli.terminal import notes


def import_(
    folder: Annotated[Path, Parameter(help="A Hugging Face folder: GPT-2, Qwen3, Llama, BERT, Marian or ViT.")],
    /,
    *,
    out: Annotated[Path, Parameter(help="Model folder to write.")],
    tokenizer: Annotated[bool, Parameter(negative="--no-tokenizer", help="Bring the tokenizer along.")] = True,
    text: Text = (),
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Open a model from elsewhere, and compare it with transformers: logits, greedy text, token ids."""
    from kotha.export.huggingface.import_ import import_model
    from kotha.export.parity import lines_of

    with notes().status(f"reading {folder} …"):
        found, report = import_model(folder, out, with_tokenizer=tokenizer, lines=lines_of(text), overwrite=overwrite)
    parameters = sum(parameter.numel() for parameter in found.bundle.model.parameters())
    show({"out": str(out), "parameters": parameters}, report, as_json)
