"""The map of words as a picture in one offline page, with the neighbours of the words that were asked for.

Every word is a dot that says its name when pointed at. Labels stand where they cover no other: the words asked for come
first, then the most frequent. A phone sets text larger, so it shows those labels that have room at that size.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any, NamedTuple

from kotha.errors import UsageError
from kotha.evaluate.tables import Table
from kotha.inside.embeddings.near import Dot, Neighbour, WordMap, nearest_words, word_map
from kotha.inside.embeddings.words import Embeddings, Word
from kotha.inside.view import View
from kotha.page import Page, escape

_WIDTH, _HEIGHT, _MARGIN = 680, 560, 28
# Sizes of a label's letters on a wide window and on a phone; `kotha.page` sets the latter for all pictures.
_SMALL, _LARGE = 13, 20
_PHONE = "@media (max-width: 34rem) { .wide { display: none } }"
_HALO = "paint-order:stroke;stroke:var(--paper,#fff);stroke-width:3px;stroke-linejoin:round"


class _Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "_Box") -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom

    @property
    def inside(self) -> bool:
        return self.left >= 0 and self.top >= 0 and self.right <= _WIDTH and self.bottom <= _HEIGHT


@dataclass(frozen=True)
class NearWords:
    """Words with their neighbours, and the table that they stand in."""

    table: Embeddings
    near: tuple[tuple[Word, list[Neighbour]], ...]
    centred: bool
    map_words: int

    @cached_property
    def map(self) -> WordMap:
        """The most frequent words and those asked for, in a plane."""
        return word_map(self.table, [word for word, _ in self.near], self.map_words)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON; the map is in the page alone."""
        vocab_size, width = self.table.vectors.shape
        words = [
            {
                "word": word.text,
                "pieces": list(word.pieces),
                "mean_of_pieces": not word.whole,
                "seen": word.seen,
                "neighbours": [asdict(each) for each in neighbours],
            }
            for word, neighbours in self.near
        ]
        return {"model": {"vocab_size": vocab_size, "width": width, "centred": self.centred}, "words": words}

    def tables(self) -> list[Table | str]:
        """The neighbours of each word, to read."""
        shown: list[Table | str] = []
        for word, near in self.near:
            mean = (
                [] if word.whole else [f"{word.text} is not one token: this is the mean of {' + '.join(word.pieces)}"]
            )
            rows = [[each.text, f"{each.cosine:.3f}"] for each in near]
            shown.append(Table(word.text, ["nearest", "cosine"], rows, mean))
        return shown


def embeddings_view(
    table: Embeddings,
    words: Sequence[str] = (),
    *,
    count: int = 10,
    centred: bool = True,
    map_words: int = 300,
    name: str = "a model",
) -> View[NearWords]:
    """The ``count`` nearest words of each, and a map with the ``map_words`` most frequent; ``name`` is the model's."""
    if count < 1 or map_words < 1:
        raise UsageError("count and map_words are whole numbers from 1")
    known = [table.find(each) for each in words]
    near = tuple((word, nearest_words(table, word, count, centred)) for word in known)
    found, title = NearWords(table, near, centred, map_words), f"Words of {name}"
    remarks = tuple(
        f"{word.text}: training met its rarest piece {word.seen} times, too seldom to place it"
        for word in known
        if not word.learned
    )
    return View(title, found, lambda: embeddings_page(title, found.map, near, centred), found.to_dict, remarks)


def embeddings_page(
    title: str, found: WordMap, neighbours: Sequence[tuple[Word, list[Neighbour]]], centred: bool = True
) -> str:
    """The whole page as HTML."""
    lead = f"{len(found.dots):,} words by their embeddings: words that are used alike lie near each other."
    page = Page(title, lead)
    page.figure(
        draw_map(found),
        f"The two directions in which the words differ most; together they show {sum(found.shares):.1%} of all "
        f"differences ({found.shares[0]:.1%} across, {found.shares[1]:.1%} up), the rest lies behind the page. "
        "Point at a dot to read its word.",
    )
    if neighbours:
        page.heading("Nearest words")
        start = "after the mean of all words is taken away" if centred else "as they are"
        page.paragraph(f"By the cosine between vectors, {start}: 1 is the same way.")
        header = ["nearest", *(word.text + ("" if word.whole else " *") for word, _ in neighbours)]
        columns = [[f"{each.text} {each.cosine:.2f}" for each in near] for _, near in neighbours]
        rows = enumerate(zip_longest(*columns, fillvalue=""), 1)
        page.table(header, [[str(place), *cells] for place, cells in rows], {})
        if not all(word.whole for word, _ in neighbours):
            page.paragraph("* not one token: the mean of its pieces.")
    return page.html("Made by kotha inside embeddings.")


def draw_map(found: WordMap) -> str:
    """Dots and labels as an ``<svg>`` that is safe to put into a page."""
    places = _places(found.dots)
    words = {each: (dot.text, places[each]) for each, dot in enumerate(found.dots)}
    order = sorted(words, key=lambda each: not found.dots[each].chosen)  # the chosen first
    both = _placed({each: words[each] for each in order}, _LARGE)
    taken = [_box(*words[each], side, _SMALL) for each, side in both.items()]
    wide = _placed({each: words[each] for each in order if each not in both}, _SMALL, taken)
    dots = "".join(_dot(dot, place) for dot, place in zip(found.dots, places, strict=True))
    labels = "".join(
        _label(found.dots[each], places[each], side, kind)
        for kind, sides in (("", both), ("wide", wide))
        for each, side in sides.items()
    )
    return (
        f'<svg role="img" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-size="{_SMALL}">'
        f"<title>A map of {len(found.dots)} words</title><style>{_PHONE}</style>{dots}{labels}</svg>"
    )


def _places(dots: Sequence[Dot]) -> list[tuple[float, float]]:
    """Where the dots lie: both axes to one scale, so that distances can be compared."""
    xs, ys = [dot.x for dot in dots], [dot.y for dot in dots]
    spans = (max(xs) - min(xs), max(ys) - min(ys))
    rooms = (_WIDTH - 2 * _MARGIN, _HEIGHT - 2 * _MARGIN)
    scale = min((room / span for room, span in zip(rooms, spans, strict=True) if span), default=0.0)
    middle = ((max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2)
    return [
        (round(_WIDTH / 2 + scale * (dot.x - middle[0]), 1), round(_HEIGHT / 2 - scale * (dot.y - middle[1]), 1))
        for dot in dots
    ]


def _placed(words: dict[int, tuple[str, tuple[float, float]]], size: int, taken: Iterable[_Box] = ()) -> dict[int, str]:
    """Words that find room for their label, each with the side of its dot: right, left, above or below."""
    boxes, found = list(taken), {}
    for each, (text, place) in words.items():
        for side in ("right", "left", "above", "below"):
            box = _box(text, place, side, size)
            if box.inside and not any(box.meets(other) for other in boxes):
                boxes.append(box)
                found[each] = side
                break
    return found


def _box(text: str, place: tuple[float, float], side: str, size: int) -> _Box:
    """About the room that a label takes."""
    x, y = place
    # In sizes of a letter, estimated; marks above and below take none.
    ems = sum({"Mn": 0.0, "Mc": 0.38, "Cf": 0.0}.get(unicodedata.category(letter), 0.68) for letter in text)
    width, half = ems * size, 0.62 * size
    left = {"right": x + 6, "left": x - 6 - width}.get(side, x - width / 2)
    middle = {"above": y - 6 - half, "below": y + 6 + half}.get(side, y)
    return _Box(left, middle - half, left + width, middle + half)


def _dot(dot: Dot, place: tuple[float, float]) -> str:
    colour, radius = ("var(--warm,#b3541e)", 5) if dot.chosen else ("var(--accent,#0b6e4f)", 2.5)
    return (
        f'<circle cx="{place[0]:g}" cy="{place[1]:g}" r="{radius}" style="fill:{colour}">'
        f"<title>{escape(dot.text)}</title></circle>"
    )


def _label(dot: Dot, place: tuple[float, float], side: str, kind: str) -> str:
    x, y = place
    x += {"right": 6, "left": -6}.get(side, 0)
    rise = {"above": "-.6em", "below": "1.3em"}.get(side, ".35em")
    anchor = {"right": "start", "left": "end"}.get(side, "middle")
    look = "fill:var(--warm,#b3541e);font-weight:700" if dot.chosen else "fill:var(--ink,#1c1b19)"
    return (
        f'<text x="{x:g}" y="{y:g}" dy="{rise}" text-anchor="{anchor}" lang="bn" class="{kind}" '
        f'style="{look};{_HALO}"><title>{escape(dot.text)}</title>{escape(dot.text)}</text>'
    )
