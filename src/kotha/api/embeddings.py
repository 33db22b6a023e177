"""A model's embedding table: neighbours, a map, and the rows that a training step changes."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kotha.api.model import load
from kotha.i18n.message import Message, Option, Text
from kotha.inside.embeddings import Embeddings, embeddings_view, touched_rows
from kotha.report.table import Table


@dataclass(frozen=True)
class WordsReport:
    """The findings, as JSON and as tables."""

    found: dict[str, Any]
    shown: list[Table | Text]

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON."""
        return self.found


def look(
    run: Path, words: Sequence[str] = (), map_: Path | None = None, text: str | None = None, **choice: Any
) -> WordsReport:
    """Return the neighbours of words, a map of words, and the embedding rows that training on a text would change.

    ``choice`` may set ``count`` (the number of neighbours), ``centred`` and ``map_words``.
    """
    bundle = load(run, "cpu").bundle
    opened = Embeddings(bundle.model, bundle.tokenizer)
    view = embeddings_view(opened, words, name=run.resolve().name, **choice)
    found = view.to_dict()
    shown: list[Table | Text] = [each.table() for each in view.found.words]
    if words and choice.get("centred", True):
        template = (
            "relative to the mean of all words ({plain}: relative to zero), "
            "so that two random words have a cosine near 0"
        )
        shown.append(Message(template, plain=Option("plain", True)))
    if map_ is not None:
        drawn = view.found.map
        found["map"] = {"file": str(view.save(map_)), "words": len(drawn.dots), "shares": list(drawn.shares)}
        template = "Map: {path} ({words:,} words, {share:.1%} of the variance; open it in a browser)"
        shown.append(Message(template, path=map_, words=len(drawn.dots), share=sum(drawn.shares)))
    if text is not None:
        touched = touched_rows(bundle.model, opened.tokenizer.encode(text))
        found["touched"] = asdict(touched)
        shown.append(touched.table())
    return WordsReport(found, shown)
