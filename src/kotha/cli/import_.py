"""``kotha import``: a model from Hugging Face opens here, and proves that it is the same."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from kotha.cli.export import Json, Overwrite, Text, read_lines, show
from kotha.cli.terminal import notes
from kotha.errors import UsageError


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
    if out.resolve() == folder.resolve():
        raise UsageError(f"--out {out} is the folder that is read; choose another")
    lines = read_lines(text)
    from dataclasses import replace

    from kotha.bundle import save
    from kotha.export.huggingface.check import check_hf
    from kotha.export.huggingface.import_ import import_hf

    with notes().status(f"reading {folder} …"):
        found = import_hf(folder, with_tokenizer=tokenizer)
        # First, so that a folder that it cannot open leaves nothing behind.
        report = check_hf(folder, found.bundle, found.layout, lines)
        save(out, found.bundle.model, found.bundle.tokenizer, overwrite)
    remark = "; ".join(filter(None, [report.remark, *found.remarks])) or None
    parameters = sum(parameter.numel() for parameter in found.bundle.model.parameters())
    about = {"architecture": found.layout.architecture, "parameters": parameters}
    show({"out": str(out), **about, "parity": replace(report, remark=remark)}, as_json)
