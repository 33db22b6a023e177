"""A model goes out by name of the door; what each proves is the door's own."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from kotha.bundle import Bundle
from kotha.errors import KothaError, UsageError, nearest
from kotha.export.card import About
from kotha.export.huggingface.check import check_hf
from kotha.export.huggingface.export import Dtype, Wishes, export_hf
from kotha.export.parity import ParityReport
from kotha.generate.conversation import was_taught
from kotha.generate.engine import Engine
from kotha.model.gpt import GPT

DOORS = ("hf", "gguf", "onnx")


def export(bundle: Bundle, run: Path | None, to: str, out: Path, **wishes: Any) -> ParityReport:
    """Write a model for other tools, and compare it there."""
    if to == "hf":
        return _hf(bundle, run, out, **wishes)
    if to == "gguf":
        from kotha.export.gguf.export import export_gguf

        return export_gguf(bundle.widened(), out, **wishes)
    if to == "onnx":
        from kotha.export.onnx.export import export_onnx

        return export_onnx(bundle.widened(), out, **wishes)
    raise UsageError(f"to={to!r} is no door{nearest(to, DOORS)}")


def _hf(
    bundle: Bundle,
    run: Path | None,
    out: Path,
    *,
    lines: Sequence[str] | None = None,
    dtype: Dtype = "float32",
    license: str | None = None,
    overwrite: bool = False,
) -> ParityReport:
    chat = isinstance(bundle.model, GPT) and was_taught(Engine(bundle.model, bundle.tokenizer, max_batch=1))
    wishes = Wishes(dtype=dtype, chat=chat, license=license, overwrite=overwrite)
    layout = export_hf(bundle, out, About() if run is None else About.of(run), wishes)
    was = next(bundle.model.parameters()).dtype
    rounded = Bundle(bundle.model.to(getattr(torch, dtype)), bundle.tokenizer)
    try:
        report = check_hf(out, rounded, layout, lines)
    except KothaError as error:  # the folder is there by now
        report = ParityReport(door="hf", refused=str(error))
    if getattr(torch, dtype).itemsize < was.itemsize:
        remark = f"the weights were rounded to {dtype} on their way out, and are compared as rounded"
        report = replace(report, remark="; ".join(filter(None, [report.remark, remark])))
    return report
