"""The flow as a page, which the studio's components draw, and as a table (``web/src/pages/views/Flow.svelte``)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from kotha.artifacts.model_folder import Bundle
from kotha.errors import UsageError
from kotha.i18n.message import Text
from kotha.inside.flow.flow import Flow, flow
from kotha.inside.inputs import ModelInput, read_image, read_without_tokenizer, speller
from kotha.inside.request import Asked, as_asked, load_picture, read_asked
from kotha.inside.view import View
from kotha.model.config import ViTConfig
from kotha.model.family import build
from kotha.model.presets import preset
from kotha.report.single_file import view_page

HEADER = ["station", "shape", "mean", "std", "min", "max", "length", "entropy, bits"]
# The workshop's question 12a asks for this text.
_QUESTION = "বাংলাদেশ ব্যাংক সুদ বৃদ্ধি"


def flow_view(bundle: Bundle, asked: Asked | str | None = None) -> View[Flow]:
    """A text or an image through a model; left out, the workshop's own text."""
    wanted = Asked() if asked is None else as_asked(asked)
    if wanted.text is None and wanted.image is None and bundle.tokenizer is not None:
        wanted = replace(wanted, text=_QUESTION)
    return _view(bundle, read_asked(bundle, wanted), wanted.headline())


def preset_flow_view(name: str, asked: Asked | str | None = None) -> View[Flow]:
    """The same of a preset's shapes: fresh weights, the same each time; an image model reads noise if given none."""
    wanted = Asked() if asked is None else as_asked(asked)
    if wanted.second is not None or wanted.target is not None:
        raise UsageError("a second sentence and a target need a tokenizer, and a preset has none; give a text alone")
    config = preset(name)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = build(config).eval()
        if isinstance(config, ViTConfig):
            noise = torch.rand(config.n_channels, config.image_size, config.image_size) * 2 - 1
            picture = noise if wanted.image is None else load_picture(wanted.image, config)
    if isinstance(config, ViTConfig):
        given, title = read_image(model, picture), wanted.headline("noise")
    else:
        given = read_without_tokenizer(model, _QUESTION if wanted.text is None else wanted.text)
        title = wanted.headline(_QUESTION)
    return _view(Bundle(model, None), given, f"{name}: {title}")


def _view(bundle: Bundle, given: ModelInput, title: Text) -> View[Flow]:
    found, spell = flow(bundle.model, given), speller(bundle.tokenizer)
    return View(title, found, lambda: flow_page(found, title, spell), lambda: found.to_dict(spell), found.given.remarks)


def flow_page(found: Flow, title: Text, spell: Callable[[int], str]) -> str:
    """One offline page; ``spell`` says how an answer's id reads."""
    return view_page("flow", title, page_data(found, spell), found.given.remarks, made_by="kotha inside flow")


def page_data(found: Flow, spell: Callable[[int], str]) -> dict[str, Any]:
    """What the page shows, as the server says it (``/api/inside/flow``)."""
    given = found.given
    lines = {name: [piece.to_dict() for piece in line] for name, line in given.lines.items()}
    return {**found.to_dict(spell), "lines": lines, "grid": given.grid, "masked": list(given.masked)}


def rows(found: Flow) -> list[list[str]]:
    """A row of figures for each station."""
    return [
        [
            station.place,
            station.size,
            *(f"{value:.4g}" for value in (station.mean, station.std, station.low, station.high, station.norm)),
            ", ".join(f"{bits:.2f}" for bits in station.entropies.values()) or "-",
        ]
        for stage in found.stages
        for station in stage.stations
    ]
