"""The token table of a model from several sides: neighbours, a map, what a width costs, which rows a step moves."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kotha.api.model import load
from kotha.errors import UsageError
from kotha.i18n.message import Message, Option, Text
from kotha.inside.embeddings import Embeddings, embeddings_view
from kotha.inside.token_table import WIDTHS, touched_rows, width_costs, width_table
from kotha.report.table import Table


@dataclass
class WordsReport:
    """What was found so far: as JSON has it, and to read."""

    found: dict[str, Any] = field(default_factory=dict)
    shown: list[Table | Text] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return self.found

    def look(
        self, run: Path, words: Sequence[str] = (), map_: Path | None = None, text: str | None = None, **choice: Any
    ) -> None:
        """The neighbours of words in one model; a map of them in a page; which rows a step on a text would touch.

        ``choice`` is ``count`` of neighbours, ``centred`` and ``map_words``.
        """
        bundle = load(run, "cpu").bundle
        opened = Embeddings(bundle.model, bundle.tokenizer)
        view = embeddings_view(opened, words, name=run.resolve().name, **choice)
        self.found |= view.to_dict()
        self.shown += [each.table() for each in view.found.words]
        if not words:
            del self.found["words"]
        elif choice.get("centred", True):
            told = "from the mean of all words ({plain}: from zero), so that two random words have a cosine near 0"
            self.shown.append(Message(told, plain=Option("plain", True)))
        if map_ is not None:
            drawn = view.found.map
            self.found["map"] = {"file": str(view.save(map_)), "words": len(drawn.dots), "shares": list(drawn.shares)}
            told = "Map: {path} ({words:,} words, {share:.1%} of their differences; open it in a browser)"
            self.shown.append(Message(told, path=map_, words=len(drawn.dots), share=sum(drawn.shares)))
        if text is not None:
            touched = touched_rows(bundle.model, opened.tokenizer.encode(text))
            self.found["touched"] = asdict(touched)
            self.shown.append(touched.table())

    def cost(self, widths: Sequence[int] | None = None, vocab_size: int | None = None) -> None:
        """What a table of each width costs."""
        size = self.found.get("model", {}).get("vocab_size") if vocab_size is None else vocab_size
        if size is None:
            raise UsageError(
                "say how many tokens: {vocab_size}, or name a run folder", vocab_size=Option("vocab_size", 32100)
            )
        costs = width_costs(size, WIDTHS if widths is None else widths)
        self.found["widths"] = {"vocab_size": size, "rows": [asdict(each) for each in costs]}
        self.shown.append(width_table(size, costs))
