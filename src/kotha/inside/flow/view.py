"""A flow to look at: of an opened model, or of a preset with fresh weights, for its shapes."""

from dataclasses import replace

import torch

from kotha.bundle import Bundle
from kotha.errors import UsageError
from kotha.inside.asked import Asked, as_asked, read_asked
from kotha.inside.flow.flow import Flow, flow
from kotha.inside.flow.page import flow_page
from kotha.inside.inputs import ModelInput, name_piece, read_image, read_without_tokenizer
from kotha.inside.pictures import load_picture
from kotha.inside.view import View
from kotha.model.config import ViTConfig
from kotha.model.family import build
from kotha.model.presets import preset

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


def _view(bundle: Bundle, given: ModelInput, title: str) -> View[Flow]:
    found, tokenizer = flow(bundle.model, given), bundle.tokenizer

    def spell(token: int) -> str:
        return str(token) if tokenizer is None else name_piece(tokenizer, token).text

    return View(title, found, lambda: flow_page(found, title, spell), lambda: found.to_dict(spell), found.given.remarks)
