"""GGUF: the file that llama.cpp, and what is built on it, opens.

``layout.py`` says which of its architectures a model is, ``vocabulary.py`` turns the tokenizer into its words,
``file.py`` writes, ``check.py`` asks real llama.cpp (``llamacpp.py``) whether it is still the same model.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kotha.bundle import Bundle
from kotha.errors import KothaError
from kotha.export.gguf.check import check_file
from kotha.export.gguf.file import KINDS, as_gpt, write_file
from kotha.export.parity import ParityReport

__all__ = ["KINDS", "export_gguf"]


def export_gguf(
    bundle: Bundle, out: Path, *, kind: str = "f16", lines: Sequence[str] | None = None, overwrite: bool = False
) -> ParityReport:
    """Write a GGUF file (at ``out``, or into a folder ``out`` as model-KIND.gguf) and compare it in llama.cpp.

    ``lines`` is the text to compare on; left out, lines of the built-in stories and awkward ones.
    """
    model = as_gpt(bundle.model)
    if bundle.tokenizer is None:
        raise KothaError("this model folder has no tokenizer, and a GGUF file needs one; train or save it with one")
    path = out if out.suffix == ".gguf" else out / f"model-{kind}.gguf"
    if not overwrite and _is_there(path):
        raise KothaError(f"{path} exists; choose another --out, or replace it with --overwrite")
    vocabulary, wider = write_file(model, bundle.tokenizer, path, kind)
    report = check_file(model, bundle.tokenizer, path, kind, vocabulary, lines)
    if not wider:
        return report
    remark = f"{len(wider)} matrices have rows that are no multiple of 32 and stay in float16: {', '.join(wider[:4])}"
    return replace(report, remark="; ".join(filter(None, [report.remark, remark])))


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:
        raise KothaError(f"{path} could not be written: {error.strerror or error}") from error
