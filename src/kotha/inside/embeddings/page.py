"""The map of words in one offline page, drawn by the studio's own map, with the neighbours of the words asked for."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from kotha.errors import UsageError
from kotha.i18n.message import Message, Text
from kotha.inside.embeddings.near import Neighbour, WordMap, nearest_words, word_map
from kotha.inside.embeddings.words import Embeddings, Word
from kotha.inside.view import View
from kotha.report.single_file import report_page
from kotha.report.table import Table


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

    def tables(self) -> list[Table | Text]:
        """The neighbours of each word, to read."""
        shown: list[Table | Text] = []
        for word, near in self.near:
            pieces = " + ".join(word.pieces)
            mean = Message("{word} is not one token: this is the mean of {pieces}", word=word.text, pieces=pieces)
            rows = [[each.text, f"{each.cosine:.3f}"] for each in near]
            header = [Message("nearest"), Message("cosine")]
            shown.append(Table(word.text, header, rows, [] if word.whole else [mean]))
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
    found, title = NearWords(table, near, centred, map_words), Message("Words of {name}", name=name)
    remarks = tuple(
        Message("{word}: training met its rarest piece {n} times, too seldom to place it", word=word.text, n=word.seen)
        for word in known
        if not word.learned
    )
    return View(title, found, lambda: embeddings_page(found, name, remarks), found.to_dict, remarks)


def embeddings_page(found: NearWords, name: str, remarks: Sequence[Text] = ()) -> str:
    """The whole page as HTML: the map, and the neighbours of each word; ``name`` is the model's."""
    seen = found.map
    words = [
        {"text": word.text, "pieces": list(word.pieces), "neighbours": [asdict(each) for each in near]}
        for word, near in found.near
    ]
    data = {
        "name": name,
        "dots": [asdict(dot) for dot in seen.dots],
        "shares": list(seen.shares),
        "width": found.table.vectors.shape[1],
        "centred": found.centred,
        "words": words,
    }
    return report_page("words", Message("Words of {name}", name=name), data, remarks, made_by="kotha inside embeddings")
