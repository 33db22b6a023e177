"""The flow as a page: a diagram from top to bottom, a picture for each stage, and every figure in a table.

The pictures are narrow, so that a phone shows them as they are: a stage is boxes on a line, with the way around each
part beside it. Colours are the custom properties of `kotha.page`, so a picture follows light and dark. The first layer
of a stack stands open; the others, which look the same and differ in their figures, are folded under a line that says
the most important ones.
"""

from collections.abc import Callable
from dataclasses import replace

import torch

from kotha.bundle import Bundle
from kotha.chart import Chart, Series
from kotha.errors import UsageError
from kotha.inside.asked import Asked, as_asked, load_picture, read_asked
from kotha.inside.flow.flow import FinalAnswer, Flow, Stage, Station, flow
from kotha.inside.inputs import ModelInput, read_image, read_without_tokenizer, speller
from kotha.inside.view import View, styled
from kotha.model.config import ViTConfig
from kotha.model.family import build
from kotha.model.presets import preset
from kotha.page import Page, escape
from kotha.wording import counted

HEADER = ["station", "shape", "mean", "std", "min", "max", "length", "entropy, bits"]
# The workshop's question 12a asks for this text.
_QUESTION = "বাংলাদেশ ব্যাংক সুদ বৃদ্ধি"
_MIDDLE, _END = 213, ' text-anchor="end"'
_WIDTH, _LEFT, _RIGHT = 400, 34, 392
_GAP = 18
# At most so many bars for the lengths of vectors; of a longer text the last ones.
_BARS = 28
# Heads that one line has room for.
_HEADS = 3


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
    page = Page(
        title, f"{found.given.sizes} through {counted(n_layers, 'layer')}: shapes and figures at every station."
    )
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
    lengths = Series("length", [(number, stage.stations[-1].norm) for number, stage in enumerate(staged)], dots=True)
    bits = Series("entropy", [(number, stage.bits) for number, stage in enumerate(staged)], "warm", dots=True)
    pictures = [
        Chart(f"{line.name.capitalize()} by layer", "layer", unit, [line], from_zero=True).svg()
        for line, unit in ((lengths, "length"), (bits, "bits"))
    ]
    captions = ["How long a vector is, on average, when it leaves each layer."]
    captions += ["How widely the heads look: 0 bits is one place alone."]
    page.heading("From layer to layer")
    page.figures(zip(pictures, captions, strict=True))


def stage_svg(stage: Stage, found: Flow) -> str:
    """One stage as a picture: boxes on a line, and the way around each part."""
    parts: list[str] = []
    y = leaves = 8.0  # where the next box begins, and where the way around left the line
    for station in stage.stations:
        height = 52.0 + 18 * bool(station.inside)
        if station.entropies:
            height += 8 + 15 * -(-len(station.entropies) // _HEADS)
        parts.append(_box(station, y, height, _names(stage, station, found)))
        if station.kind == "sum":
            parts.append(_way_around(leaves, y + height / 2))
            leaves = y + height + _GAP
        y += height + _GAP
    line = f'<path d="M{_MIDDLE:g} 0V{y:g}" style="stroke:var(--soft,#6b665b)" fill="none" stroke-width="1.5"/>'
    title = f"<title>{escape(stage.title)}</title>"
    return f'<svg role="img" viewBox="0 0 {_WIDTH} {y:g}" font-size="13">{title}{line}{"".join(parts)}</svg>'


def answer_svg(answer: FinalAnswer, spell: Callable[[int], str]) -> str:
    """The likeliest answers as bars."""
    step, start, room = 30, 150, _WIDTH - 150 - 62
    most = max(share for _, share in answer.best)
    bars = ""
    for place, (token, share) in enumerate(answer.best):
        y, width = 4 + place * step, max(1.5, room * share / most)
        said = f"{share:.1%}" if share >= 0.001 else f"{100 * share:.2g}%"
        bars += (
            f'<text x="{start - 10}" y="{y + 17}" text-anchor="end" font-size="15" lang="bn" '
            f'style="fill:var(--ink,#1c1b19)">{escape(spell(token))}</text>'
            f'<rect x="{start}" y="{y + 4}" width="{width:.1f}" height="17" rx="3" style="fill:var(--accent,#0b6e4f)"/>'
            f'<text x="{start + width + 8:.1f}" y="{y + 17}" font-size="12.5" '
            f'style="fill:var(--soft,#6b665b)">{said}</text>'
        )
    height = 8 + step * len(answer.best)
    return f'<svg role="img" viewBox="0 0 {_WIDTH} {height}"><title>{escape(answer.question)}</title>{bars}</svg>'


# -- pieces of a picture ----------------------------------------------------------------------------------------------


def _names(stage: Stage, station: Station, found: Flow) -> list[str]:
    """Whose each vector is, for those who point at its bar; a ViT's answer is nobody's alone."""
    pieces = [piece.text for piece in found.given.lines[stage.line]]
    pieces = pieces[1:] if station.place == "patches" else pieces  # no class token yet
    return pieces if len(pieces) == len(station.norms) else [""] * len(station.norms)


def _box(station: Station, y: float, height: float, names: list[str]) -> str:
    look = {
        "part": "fill:color-mix(in srgb,var(--accent,#0b6e4f) 13%,var(--paper,#fff));stroke:var(--accent,#0b6e4f)",
        "sum": "fill:color-mix(in srgb,var(--warm,#b3541e) 9%,var(--paper,#fff));stroke:var(--warm,#b3541e)",
    }.get(station.kind, "fill:var(--paper,#fff);stroke:var(--line,#ded9cc)")
    figures = f"mean {station.mean:.2g} · std {station.std:.2g} · {station.low:.2g} … {station.high:.2g}"
    texts = _text(_LEFT + 12, y + 21, station.label, "ink", 14, bold=True)
    texts += _text(_RIGHT - 12, y + 21, station.size, "soft", 13, end=True)
    texts += _text(_LEFT + 12, y + 40, figures, "soft", 12)
    texts += _text(_LEFT + 12, y + 58, station.inside, "soft", 12) if station.inside else ""
    below = y + (72 if station.inside else 66)
    return (
        f'<g><rect x="{_LEFT}" y="{y:g}" width="{_RIGHT - _LEFT}" height="{height:g}" rx="7" style="{look}"/>'
        f"{texts}{_lengths(station, y + 42, names)}{_heads(station, below)}</g>"
    )


def _text(x: float, y: float, words: str, colour: str, size: float, bold: bool = False, end: bool = False) -> str:
    look = f'style="fill:var(--{colour})"' + (' font-weight="600"' if bold else "") + (_END if end else "")
    return f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" {look}>{escape(words)}</text>'


def _lengths(station: Station, base: float, names: list[str]) -> str:
    """How long each position's vector is, as small bars at the right edge."""
    if station.place in ("logits", "probabilities"):
        return ""  # scores, no vectors that have a length
    named = list(zip(names, station.norms, strict=True))[-_BARS:]
    most = max(norm for _, norm in named) or 1.0
    step = min(6.0, 76 / len(named))
    bars = ""
    for place, (name, norm) in enumerate(named):
        x, height = _RIGHT - 12 - step * (len(named) - place), max(1.0, 14 * norm / most)
        said = f"<title>{escape(name)}: length {norm:.3g}</title>"
        bars += (
            f'<rect x="{x:.1f}" y="{base - height:.1f}" width="{step * 0.72:.1f}" height="{height:.1f}">{said}</rect>'
        )
    return f'<g style="fill:var(--accent);opacity:.75">{bars}</g>'


def _heads(station: Station, y: float) -> str:
    """How widely each head looks, a few heads a line."""
    if not station.entropies:
        return ""
    words = [f"head {head} {bits:.2f}" for head, bits in station.entropies.items()]
    words[0] = f"bits of entropy: {words[0]}"
    lines = [" · ".join(words[start : start + _HEADS]) for start in range(0, len(words), _HEADS)]
    return "".join(_text(_LEFT + 12, y + 12 + 15 * place, line, "soft", 11) for place, line in enumerate(lines))


def _way_around(start: float, end: float) -> str:
    above, side = start - 6, 12
    down = f"M{_MIDDLE:g} {above:g}H{side + 8}Q{side} {above:g} {side} {above + 8:g}V{end - 8:g}"
    path = f"{down}Q{side} {end:g} {side + 8} {end:g}H{_LEFT - 3}"
    arrow = f"M{_LEFT - 9} {end - 4:g}L{_LEFT - 2} {end:g}L{_LEFT - 9} {end + 4:g}"
    style = 'style="stroke:var(--warm,#b3541e)" fill="none" stroke-width="1.5"'
    return f'<g><path d="{path}" {style}/><path d="{arrow}" {style}/></g>'
