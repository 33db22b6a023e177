"""The doors: which of them a config can pass, and the way through each, out and in.

A model that took days to train must not find its door closed by a setting that nobody needed, so each door answers for
a config alone: open, or closed by these settings. Whoever passes is compared on the other side (see ``parity.py``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kotha.errors import ConfigError, UsageError, nearest
from kotha.export.huggingface.layouts import choose_layout
from kotha.export.parity import ParityReport
from kotha.model.config import ClassifierConfig, GPTConfig, ModelConfig

if TYPE_CHECKING:
    from kotha.artifacts.model_folder import Bundle

Target = Literal["hf", "gguf", "onnx", "web"]


@dataclass(frozen=True)
class Door:
    """A way out, and whether a config passes it."""

    name: Target
    open: bool
    because: str  # as what it opens there, or which settings close it


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
        raise UsageError(f"to={to!r} is no door{nearest(to, ways)}")
    return ways[to](bundle, out, settings)


def doors(config: ModelConfig) -> list[Door]:
    """The doors hf, gguf, onnx and web, for a config."""
    from kotha.export.gguf.layouts import architecture_of
    from kotha.export.web.export import opens_in_browser

    ways: dict[Target, Callable[[], str]] = {
        "hf": lambda: f"opens as {choose_layout(config).architecture}",
        "gguf": lambda: f"opens in llama.cpp as {architecture_of(config)}",
        "onnx": lambda: _opens_as_graph(config),
        "web": lambda: opens_in_browser(config),
    }
    return [_door(name, opens) for name, opens in ways.items()]


def _opens_as_graph(config: ModelConfig) -> str:
    if isinstance(config, ClassifierConfig):
        raise ConfigError(f"no ONNX graph: family={config.family!r}: ours take no classifiers; export this one to hf")
    return "opens in onnxruntime" + (", with a cache" if isinstance(config, GPTConfig) else "")


def _door(name: Target, opens: Callable[[], str]) -> Door:
    try:
        return Door(name, True, opens())
    except ConfigError as error:
        return Door(name, False, str(error).partition(": ")[2])
