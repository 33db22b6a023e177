"""The doors: which of them a config can pass, and the way through each, out and in.

A model that took days to train must not find its door closed by a setting that nobody needed, so each door answers for
a config alone: open, or closed by these settings. Whoever passes is compared on the other side (see ``parity.py``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kotha.errors import UsageError, nearest
from kotha.export.huggingface.layouts import choose_layout
from kotha.export.obstacles import UnsupportedError
from kotha.export.parity import ParityReport
from kotha.i18n.message import Message, Text
from kotha.model.config import ClassifierConfig, GPTConfig, ModelConfig

if TYPE_CHECKING:
    from kotha.artifacts.model_folder import Bundle

Target = Literal["hf", "gguf", "onnx", "web"]


@dataclass(frozen=True)
class ExportTarget:
    """An export format, and whether a config can have it."""

    name: Target
    open: bool
    because: Text  # as what it opens there, or which settings close it


@dataclass(frozen=True, kw_only=True)
class ExportSettings:
    """What an export can be asked for, whatever its door."""

    weights: str | None = None
    """Their type there: hf float32, bfloat16 or float16, gguf f32, f16, q8_0 or q4_0, web int8; None: as usual."""
    license: str | None = None  # under which licence the model is given away; None: it is not known
    run: Path | None = None  # the run folder that the model card tells of
    lines: Sequence[str] | None = None  # what is compared on; None: awkward lines, and some of the built-in stories
    overwrite: bool = False  # replace what was exported there before


USUAL = ExportSettings()


def export(bundle: "Bundle", to: Target, out: Path, settings: ExportSettings = USUAL) -> ParityReport:
    """Write a model for another program, whole or not at all, and compare it there.

    A report that has not ``passed`` is about something that is written all the same.
    """
    from kotha.export.gguf.export import export_gguf
    from kotha.export.huggingface.export import export_hf
    from kotha.export.onnx.export import export_onnx
    from kotha.export.web.export import export_web

    ways = {"hf": export_hf, "gguf": export_gguf, "onnx": export_onnx, "web": export_web}
    if to not in ways:
        raise UsageError("to={to!r} is no door{nearest}", to=to, nearest=nearest(to, ways))
    return ways[to](bundle, out, settings)


def supported_targets(config: ModelConfig) -> list[ExportTarget]:
    """The formats hf, gguf, onnx and web, and for each whether a config can have it."""
    from kotha.export.gguf.layouts import architecture_of
    from kotha.export.web.export import opens_in_browser

    ways: dict[Target, Callable[[], Text]] = {
        "hf": lambda: Message("opens as {name}", name=choose_layout(config).architecture),
        "gguf": lambda: Message("opens in llama.cpp as {name}", name=architecture_of(config)),
        "onnx": lambda: _opens_as_graph(config),
        "web": lambda: opens_in_browser(config),
    }
    return [_target(name, opens) for name, opens in ways.items()]


def _opens_as_graph(config: ModelConfig) -> Text:
    if isinstance(config, ClassifierConfig):
        because = Message("family={family!r}: ours take no classifiers; export this one to hf", family=config.family)
        raise UnsupportedError("no ONNX graph: {because}", because=because)
    return (
        Message("opens in onnxruntime, with a cache")
        if isinstance(config, GPTConfig)
        else Message("opens in onnxruntime")
    )


def _target(name: Target, opens: Callable[[], Text]) -> ExportTarget:
    try:
        return ExportTarget(name, True, opens())
    except UnsupportedError as error:
        return ExportTarget(name, False, error.because)
