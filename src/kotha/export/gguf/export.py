"""GGUF: the file that llama.cpp, and what is built on it, opens.

``layouts.py`` says which of its architectures a model is, ``vocabulary.py`` turns the tokenizer into its words,
``file.py`` writes, ``check.py`` asks real llama.cpp (``llamacpp.py``) whether it is still the same model.
"""

from dataclasses import replace
from pathlib import Path
from typing import cast

from kotha.bundle import Bundle
from kotha.errors import KothaError, UsageError, nearest
from kotha.export.gguf.check import check_file
from kotha.export.gguf.file import KINDS, write_file
from kotha.export.gguf.layouts import architecture_of
from kotha.export.parity import ParityReport, our_side, with_remarks
from kotha.export.targets import USUAL, ExportSettings
from kotha.model.gpt import GPT


def export_gguf(bundle: Bundle, out: Path, settings: ExportSettings = USUAL) -> ParityReport:
    """Write a GGUF file (at ``out``, or into a folder ``out`` as model-KIND.gguf), and compare it in llama.cpp."""
    kind = settings.weights or "f16"
    if kind not in KINDS:
        raise UsageError(f"weights={kind!r} is not a type of GGUF files{nearest(kind, KINDS)}")
    architecture = architecture_of(bundle.config)
    if bundle.tokenizer is None:
        raise KothaError("this model folder has no tokenizer, and a GGUF file needs one; train or save it with one")
    path = out if out.suffix == ".gguf" else out / f"model-{kind}.gguf"
    if not settings.overwrite and _is_there(path):
        raise KothaError(f"{path} exists; choose another place, or replace it with overwrite=True")
    model = cast("GPT", our_side(bundle).model)  # what has an architecture there is one
    vocabulary, wider = write_file(model, bundle.tokenizer, path, kind)
    report = check_file(model, bundle.tokenizer, path, kind, vocabulary, settings.lines)
    report = replace(report, architecture=architecture, weights=kind)
    if not wider:
        return report
    names = ", ".join(wider[:4])
    return with_remarks(
        report, f"{len(wider)} matrices have rows that are no multiple of 32 and stay in float16: {names}"
    )


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:
        raise KothaError(f"{path} could not be written: {error.strerror or error}") from error
