"""Words of a model to look at: the neighbours of those asked for, and a map around them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from kotha.errors import UsageError
from kotha.inside.embeddings.neighbours import Neighbour, nearest_words
from kotha.inside.embeddings.page import embeddings_page
from kotha.inside.embeddings.plane import WordMap, word_map
from kotha.inside.embeddings.words import Embeddings, Word
from kotha.inside.view import View


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
    found = NearWords(
        table, tuple((word, nearest_words(table, word, count, centred)) for word in known), centred, map_words
    )
    remarks = [
        f"{word.text}: training met its rarest piece {word.seen} times, too seldom to place it"
        for word in known
        if not word.learned
    ]
    title = f"Words of {name}"
    return View(
        title, found, lambda: embeddings_page(title, found.map, found.near, centred), found.to_dict, tuple(remarks)
    )
