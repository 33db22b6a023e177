"""The flow's pictures as SVG: one for each stage, one for an answer.

A stage is boxes on a line: what passes from top to bottom, and beside it the way around each part. Colours are the
custom properties of `kotha.page`, so a picture follows light and dark; the width is that of a phone.
"""

from collections.abc import Callable

from kotha.inside.flow.flow import FinalAnswer, Flow, Stage, Station
from kotha.page import escape

_MIDDLE, _END = 213, ' text-anchor="end"'
_WIDTH, _LEFT, _RIGHT = 400, 34, 392
_GAP = 18
# At most so many bars for the lengths of vectors; of a longer text the last ones.
_BARS = 28
# Heads that one line has room for.
_HEADS = 3


def stage_svg(stage: Stage, found: Flow) -> str:
    """One stage as a picture: boxes on a line, and the way around each part."""
    parts: list[str] = []
    y = leaves = 8.0  # where the next box begins, and where the way around left the line
    for station in stage.stations:
        height = _height(station)
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


def _height(station: Station) -> float:
    lines = 2 + bool(station.inside)
    return 16 + 18 * lines + (8 + 15 * -(-len(station.entropies) // _HEADS) if station.entropies else 0)


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
