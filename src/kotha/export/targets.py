"""The export formats by name, and whether a config supports them.

The check needs only the config, so that incompatible settings are reported before a model is trained.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kotha.errors import KothaError, UsageError, nearest
from kotha.export.card import About
from kotha.export.exporter import Exporter, ExportJob
from kotha.export.libraries import require_libraries
from kotha.export.parity import ParityReport, comparison_lines
from kotha.export.weight_names import UnsupportedError
from kotha.i18n.message import Option, Text
from kotha.model.config import ModelConfig
from kotha.storage.output_paths import check_file_place
from kotha.storage.status import exists

if TYPE_CHECKING:
    from kotha.artifacts.model_folder import Bundle

Target = Literal["hf", "gguf", "onnx", "web"]


@dataclass(frozen=True)
class ExportTarget:
    """An export format, and whether a config supports it."""

    name: Target
    supported: bool
    details: Text  # how the export can be opened, or the settings that the format does not support


def export(
    bundle: "Bundle",
    to: Target,
    out: Path,
    *,
    weights: str | None = None,
    license: str | None = None,
    run: Path | None = None,
    lines: Sequence[str] | None = None,
    overwrite: bool = False,
) -> ParityReport:
    """Export a model to ``out`` (a folder, a file, or a folder for the file) atomically, and verify the result.

    ``weights`` is the type of the exported weights: float32, bfloat16 or float16 for hf; f16, f32, q8_0 or q4_0 for
    gguf; int8 for web. The export is kept even if the report has not ``passed``.
    """
    exporters = _exporters()
    if to not in exporters:
        raise UsageError("unknown export target {to!r}{nearest}", to=to, nearest=nearest(to, exporters))
    require_libraries(to)
    exporter = exporters[to]
    kind = weights or exporter.weights[0]
    if kind not in exporter.weights:
        raise UsageError(
            "weight type {kind!r} is not supported by this format{nearest}",
            kind=kind,
            nearest=nearest(kind, exporter.weights),
        )
    exporter.opens(bundle.config)
    if bundle.tokenizer is None and exporter.needs_tokenizer is not None:
        raise KothaError(
            "this model folder has no tokenizer, but {what} needs one; train or save the model with a tokenizer",
            what=exporter.needs_tokenizer,
        )
    path = out
    if exporter.file_name is not None:
        path = out if out.suffix in exporter.endings else out / exporter.file_name.format(weights=kind)
        if exists(check_file_place(path)) and not overwrite:
            raise KothaError(
                "{path} already exists; choose another path, or replace it with {overwrite}",
                path=path,
                overwrite=Option("overwrite", True),
            )
    about, lines = About.of(run, license), comparison_lines(run, bundle.tokenizer) if lines is None else lines
    report = exporter.export(
        ExportJob(bundle=bundle, path=path, weights=kind, run=run, about=about, lines=lines, overwrite=overwrite)
    )
    report.weights = kind
    return report


def supported_targets(config: ModelConfig) -> list[ExportTarget]:
    """Return the formats hf, gguf, onnx and web, and whether a config supports each of them."""
    found = []
    for name, exporter in _exporters().items():
        try:
            found.append(ExportTarget(name, True, exporter.opens(config)))
        except UnsupportedError as error:
            found.append(ExportTarget(name, False, error.because))
    return found


def _exporters() -> dict[Target, Exporter]:
    from kotha.export.gguf.export import GGUF
    from kotha.export.huggingface.export import HUGGING_FACE
    from kotha.export.onnx.export import ONNX
    from kotha.export.web.export import PAGE

    return {"hf": HUGGING_FACE, "gguf": GGUF, "onnx": ONNX, "web": PAGE}
