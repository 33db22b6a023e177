"""The token table of a model from several sides: neighbours, a map, what a width costs, which rows a step moves."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kotha.api.model import LanguageModel, load
from kotha.api.options import WordsOptions
from kotha.i18n.message import Message, Option, Text
from kotha.inside.embeddings import distance_at_widths, embeddings_view, open_table, pair_table
from kotha.inside.token_table import WIDTHS, touched_rows, width_costs, width_table
from kotha.report.table import Table
from kotha.storage import bundled


@dataclass
class WordsReport:
    """What was found: as JSON has it, to read, and what is to be said beside."""

    found: dict[str, Any] = field(default_factory=dict)
    shown: list[Table | Text] = field(default_factory=list)
    remarks: list[Text] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return self.found


def look_up(run: Path, words: Sequence[str], options: WordsOptions, page: Path | None = None) -> WordsReport:
    """The neighbours of words, a map of words as a ``page``, or of a ``pair`` how far apart it is in each run.

    With a pair, ``words`` are further runs.
    """
    report, lm = WordsReport(), load(run, "cpu")
    sizes: Any = lm.config
    if options.pair is None:
        _look(report, lm, run, words, options, page)
    else:
        runs = {bundled.title(each): load(each, "cpu").bundle for each in [run, *map(Path, words)]}
        measured = distance_at_widths({name: open_table(each, name) for name, each in runs.items()}, *options.pair)
        rows = [{"run": name, **asdict(each)} for name, each in measured.items()]
        report.found["pair"] = {"words": list(options.pair), "runs": rows}
        report.shown.append(pair_table(options.pair, measured))
    if options.widths or options.vocab_size is not None or not report.shown:
        size = options.vocab_size or sizes.vocab_size
        costs = width_costs(size, options.widths or WIDTHS)
        report.found["widths"] = {"vocab_size": size, "rows": [asdict(each) for each in costs]}
        report.shown.append(width_table(size, costs))
    return report


def _look(
    report: WordsReport, lm: LanguageModel, run: Path, words: Sequence[str], options: WordsOptions, page: Path | None
) -> None:
    """Neighbours, the map, and the rows that a step on a text would touch."""
    opened = open_table(lm.bundle, run)
    how: Any = {"count": options.count, "centred": not options.plain, "map_words": options.map_words}
    view = embeddings_view(opened, words, name=run.resolve().name, **how)
    report.remarks += view.remarks
    report.found |= view.to_dict()
    report.shown += [each.table() for each in view.found.words]
    if not words:
        del report.found["words"]
    elif not options.plain:
        message = "from the mean of all words ({plain}: from zero), so that two random words have a cosine near 0"
        report.shown.append(Message(message, plain=Option("plain", True)))
    if page is not None:
        drawn = view.found.map
        report.found["map"] = {"file": str(view.save(page)), "words": len(drawn.dots), "shares": list(drawn.shares)}
        message = "Map: {path} ({words:,} words, {share:.1%} of their differences; open it in a browser)"
        report.shown.append(Message(message, path=page, words=len(drawn.dots), share=sum(drawn.shares)))
        if opened.counts is None:
            message = "the run's data folder is not there: order in the vocabulary stands for frequency"
            report.remarks.append(Message(message))
    if options.text is not None:
        touched = touched_rows(lm.bundle.model, opened.tokenizer.encode(options.text))
        report.found["touched"] = asdict(touched)
        report.shown.append(touched.table())
