"""The lens as a page: positions down, layers across, each cell the word that the layer would say."""

from collections.abc import Callable

from kotha.bundle import Bundle
from kotha.chart import Chart, Series
from kotha.errors import UsageError
from kotha.inside.asked import Asked, as_asked, read_asked
from kotha.inside.assets import interactive
from kotha.inside.inputs import speller
from kotha.inside.lens.lens import Lens, lens
from kotha.inside.view import View
from kotha.model.vit import ViT
from kotha.page import Page


def lens_view(bundle: Bundle, asked: Asked | str) -> View[Lens]:
    """What each layer would say at each position of a text, as if the model ended there."""
    if isinstance(bundle.model, ViT):
        raise UsageError("the lens reads words, and a ViT has classes; look at its attention instead")
    found = lens(bundle.model, read_asked(bundle, asked))
    title, spell = as_asked(asked).headline(), speller(bundle.tokenizer)
    return View(title, found, lambda: lens_page(found, title, spell), lambda: found.to_dict(spell), found.given.remarks)


def lens_page(found: Lens, title: str, spell: Callable[[int], str]) -> str:
    """One offline page; ``spell`` says how a token reads."""
    page = Page(
        title, f"At each layer: {found.question}? The deeper the colour, the surer; the last layer is the model."
    )
    for remark in found.given.remarks:
        page.note(remark)
    data = {**found.to_dict(spell), "written_from": found.given.written_from}
    page.heading("How the layers come to agree")
    page.figures(_charts(found))
    return interactive(page, "lens", data, "Made by kotha inside lens. Probabilities are rounded to six places.")


def _charts(found: Lens) -> list[tuple[str, str]]:
    """How the layers come to agree, as means over the positions."""

    def mean(of: Callable[..., float]) -> list[tuple[float, float | None]]:
        return [(layer, sum(map(of, row)) / len(row)) for layer, row in enumerate(found.opinions)]

    def drawn(title: str, unit: str, *lines: Series) -> str:
        return Chart(title, "layers passed", unit, lines, from_zero=True).svg()

    away = Series("from the answer", mean(lambda each: each.kl_nats), dots=True)
    unsure = Series("undecided", mean(lambda each: each.entropy_nats), "warm", dots=True)
    given = Series("given", mean(lambda each: each.answer_probability), dots=True)
    return [
        (
            drawn("Distance and doubt by layer", "nats", away, unsure),
            "How far each layer is from the final distribution (KL), and how undecided it is itself (entropy).",
        ),
        (
            drawn("Probability of the answer by layer", "probability", given),
            "What each layer gives to the token that the model finds likeliest in the end.",
        ),
    ]
