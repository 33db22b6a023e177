"""The export formats by name: which of them a config can have, and the way to each.

A model that took days to train must not find a format closed by a setting that nobody needed, so each answers for a
config alone: open, or closed by these settings.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kotha.errors import UsageError, nearest
from kotha.export.exporter import USUAL, Exporter, ExportSettings
from kotha.export.layouts import UnsupportedError
from kotha.export.parity import ParityReport
from kotha.i18n.message import Text
from kotha.model.config import ModelConfig

if TYPE_CHECKING:
    from kotha.artifacts.model_folder import Bundle

Target = Literal["hf", "gguf", "onnx", "web"]


@dataclass(frozen=True)
class ExportTarget:
    """An export format, and whether a config can have it."""

    name: Target
    open: bool
    because: Text  # as what it opens there, or which settings close it


def export(bundle: "Bundle", to: Target, out: Path, settings: ExportSettings = USUAL) -> ParityReport:
    """Write a model for another program, whole or not at all, and compare it there."""
    exporters = _exporters()
    if to not in exporters:
        raise UsageError("to={to!r} is no door{nearest}", to=to, nearest=nearest(to, exporters))
    return exporters[to](bundle, out, settings)


def supported_targets(config: ModelConfig) -> list[ExportTarget]:
    """The formats hf, gguf, onnx and web, and for each whether a config can have it."""
    found = []
    for name, exporter in _exporters().items():
        try:
            found.append(ExportTarget(name, True, exporter.opens(config)))
        except UnsupportedError as error:
            found.append(ExportTarget(name, False, error.because))
    return found


def _exporters() -> dict[Target, Exporter]:
    from kotha.export.gguf.export import export_gguf
    from kotha.export.huggingface.export import export_hf
    from kotha.export.onnx.export import export_onnx
    from kotha.export.web.export import export_web

    return {"hf": export_hf, "gguf": export_gguf, "onnx": export_onnx, "web": export_web}
