"""A model taken away to other programs."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kotha.api import Place
from kotha.api.opened import OpenedModel
from kotha.arguments import checked

if TYPE_CHECKING:
    from kotha.export.parity import ParityReport


class Exports(OpenedModel):
    """The way out of here."""

    @checked()
    def export(
        self,
        to: Literal["hf", "gguf", "onnx", "web"],
        out: Place,
        *,
        weights: str | None = None,
        license: str | None = None,
        lines: Sequence[str] | None = None,
        overwrite: bool = False,
    ) -> "ParityReport":
        """Write the model for other tools, and prove there that it is the same: ``passed`` says whether.

        ``hf`` is a Hugging Face folder, ``gguf`` a file for llama.cpp, ``onnx`` graphs for onnxruntime, ``web`` one
        page for any browser. ``weights`` is their type there, such as ``q8_0``; ``license`` goes into the model card;
        both sides are compared on ``lines``.

        >>> lm.export("gguf", "elsewhere").passed
        True
        """
        from kotha.export.exporter import ExportSettings
        from kotha.export.targets import export

        settings = ExportSettings(weights=weights, license=license, run=self.path, lines=lines, overwrite=overwrite)
        return export(self.bundle, to, Path(out), settings)
