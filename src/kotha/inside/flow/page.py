"""The flow as a page: a diagram from top to bottom, a picture for each stage, and every figure in a table.

The pictures are narrow, so that a phone shows them as they are. The first layer of a stack stands open; the others,
which look the same and differ in their figures, are folded under a line that says the most important ones.
"""

from collections.abc import Callable

from kotha.chart import Chart, Series
from kotha.inside.assets import styled
from kotha.inside.flow.drawing import answer_svg, stage_svg
from kotha.inside.flow.flow import Flow, Stage, Station
from kotha.page import Page

HEADER = ["station", "shape", "mean", "std", "min", "max", "length", "entropy, bits"]


def flow_page(found: Flow, title: str, spell: Callable[[int], str]) -> str:
    """One offline page; ``spell`` says how an answer's id reads."""
    page = Page(title, _lead(found))
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
            _by(station),
            *(f"{value:.4g}" for value in (station.mean, station.std, station.low, station.high, station.norm)),
            ", ".join(f"{bits:.2f}" for bits in station.entropies.values()) or "-",
        ]
        for stage in found.stages
        for station in stage.stations
    ]


def _lead(found: Flow) -> str:
    n_layers = sum(stage.layer is not None for stage in found.stages)
    return f"{found.given.sizes} through {n_layers} layers: shapes and figures at every station."


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
    bits = [each for station in stage.stations for each in station.entropies.values()]
    looks = f", heads look with {sum(bits) / len(bits):.2f} bits of entropy" if bits else ""
    if last.place == "probabilities":
        return f"for each of {last.shape[-1]:,} answers a score, then a probability"
    if stage.layer is None:
        return (
            f"from {_by(first)} to {_by(last)}" if first.shape != last.shape else f"vectors of length {last.norm:.3g}"
        )
    return f"vectors leave with length {last.norm:.3g}{looks}"


def _by(station: Station) -> str:
    return "×".join(f"{size:,}" for size in station.shape)


def _charts(page: Page, found: Flow) -> None:
    staged = [stage for stage in found.stages if stage.layer is not None]
    if len(staged) < 2:
        return
    numbered = list(enumerate(staged))
    lengths = [(float(number), stage.stations[-1].norm) for number, stage in numbered]
    bits = [
        (float(number), sum(each) / len(each))
        for number, stage in numbered
        if (each := [bit for station in stage.stations for bit in station.entropies.values()])
    ]
    page.heading("From layer to layer")
    page.figures(
        [
            (
                Chart(
                    "Length by layer", "layer", "length", [Series("length", lengths, dots=True)], from_zero=True
                ).svg(),
                "How long a vector is, on average, when it leaves each layer.",
            ),
            (
                Chart(
                    "Entropy by layer", "layer", "bits", [Series("entropy", bits, "warm", dots=True)], from_zero=True
                ).svg(),
                "How widely the heads look: 0 bits is one place alone.",
            ),
        ]
    )
