"""The flow as a page: a diagram from top to bottom, a picture for each stage, and every figure in a table.

The pictures are narrow, so that a phone shows them as they are. The first layer of a stack stands open; the others,
which look the same and differ in their figures, are folded under a line that says the most important ones.
"""

from collections.abc import Callable
from dataclasses import replace

import torch

from kotha.bundle import Bundle
from kotha.chart import Chart, Point, Series
from kotha.errors import UsageError
from kotha.inside.asked import Asked, as_asked, read_asked
from kotha.inside.flow.drawing import answer_svg, stage_svg
from kotha.inside.flow.flow import Flow, Stage, flow
from kotha.inside.inputs import ModelInput, read_image, read_without_tokenizer, speller
from kotha.inside.pictures import load_picture
from kotha.inside.view import View, styled
from kotha.model.config import ViTConfig
from kotha.model.family import build
from kotha.model.presets import preset
from kotha.page import Page

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


def _view(bundle: Bundle, given: ModelInput, title: str) -> View[Flow]:
    found, spell = flow(bundle.model, given), speller(bundle.tokenizer)
    return View(title, found, lambda: flow_page(found, title, spell), lambda: found.to_dict(spell), found.given.remarks)


def flow_page(found: Flow, title: str, spell: Callable[[int], str]) -> str:
    """One offline page; ``spell`` says how an answer's id reads."""
    n_layers = sum(stage.layer is not None for stage in found.stages)
    page = Page(title, f"{found.given.sizes} through {n_layers} layers: shapes and figures at every station.")
    for remark in found.given.remarks:
        page.note(remark)
    _pieces(page, found)
    page.heading("Through the model")
    page.paragraph("Shapes are positions × width. The small bars are the lengths of the vectors, position by position.")
    for stage in found.stages:
        caption = _summary(stage)
        if stage.layer is None or stage.layer.endswith(".0"):
            page.figure(stage_svg(stage, found), f"{stage.title}: {caption}.")
        else:
            with page.folded(f"{stage.title}: {caption}"):
                page.figure(stage_svg(stage, found), stage.title)
    page.heading("What it says in the end")
    for answer in found.answers:
        page.figure(answer_svg(answer, spell), f"{answer.question[0].upper()}{answer.question[1:]}: the likeliest.")
    _charts(page, found)
    with page.folded("Every figure"):
        page.table(HEADER, rows(found), {})
    return styled(page, "flow", "Made by kotha inside flow.")


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


def _pieces(page: Page, found: Flow) -> None:
    if found.given.grid is not None:
        rows, columns = found.given.grid
        page.paragraph(f"The image is cut into {rows} × {columns} patches; a class token stands before them.")
        return
    for name, line in found.given.lines.items():
        page.heading("Into pieces" if name == "tokens" else f"The {name}, into pieces")
        page.pieces((piece.text, piece.is_part) for piece in line)
        ids = " ".join(str(piece.id) for piece in line)
        page.paragraph(f"{len(line)} ids: {ids}")


def _summary(stage: Stage) -> str:
    first, last = stage.stations[0], stage.stations[-1]
    looks = "" if stage.bits is None else f", heads look with {stage.bits:.2f} bits of entropy"
    if last.place == "probabilities":
        return f"for each of {last.shape[-1]:,} answers a score, then a probability"
    if stage.layer is None and first.shape != last.shape:
        return f"from {first.size} to {last.size}"
    return f"vectors {'of' if stage.layer is None else 'leave with'} length {last.norm:.3g}{looks}"


def _charts(page: Page, found: Flow) -> None:
    staged = [stage for stage in found.stages if stage.layer is not None]
    if len(staged) < 2:
        return
    lengths: list[Point] = [(number, stage.stations[-1].norm) for number, stage in enumerate(staged)]
    bits: list[Point] = [(number, stage.bits) for number, stage in enumerate(staged)]
    page.heading("From layer to layer")
    page.figures(
        (Chart(f"{name.capitalize()} by layer", "layer", unit, [line], from_zero=True).svg(), caption)
        for name, unit, line, caption in (
            (
                "length",
                "length",
                Series("length", lengths, dots=True),
                "How long a vector is, on average, when it leaves each layer.",
            ),
            (
                "entropy",
                "bits",
                Series("entropy", bits, "warm", dots=True),
                "How widely the heads look: 0 bits is one place alone.",
            ),
        )
    )
