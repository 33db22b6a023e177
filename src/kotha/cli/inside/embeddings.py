"""``kotha inside embeddings``: the token table of a model, from several sides."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from kotha.cli.flags import InLanguage, Json, RunName, flag, page
from kotha.cli.inside.opening import open_model
from kotha.cli.naming import model_and_words, place
from kotha.cli.spoken import said
from kotha.cli.terminal import notes, print_json, print_table
from kotha.errors import UsageError
from kotha.i18n.message import Message, Text
from kotha.storage import bundled

if TYPE_CHECKING:
    from kotha.i18n.message import Text
    from kotha.report.table import Table


def embeddings(
    run: RunName = None,
    /,
    *words: Annotated[str, flag("Words to look up; with --pair, more run folders.")],
    count: Annotated[int, flag("Neighbours of each word.")] = 10,
    centred: Annotated[bool, flag("Take the mean of all words away first.", negative="--plain")] = True,
    map_: Annotated[Path | None, page("Write a map of words to this .html file.", name="--map")] = None,
    map_words: Annotated[int, flag("How many of the most frequent words it shows.")] = 300,
    text: Annotated[str | None, flag("Tell which rows one training step on this text would touch.")] = None,
    pair: Annotated[tuple[str, str] | None, flag("Two words: how far apart they stand in each run.")] = None,
    widths: Annotated[str | None, flag("Widths for the table of costs, such as 128,256,512.")] = None,
    vocab_size: Annotated[int | None, flag("Vocabulary for that table; left out: the model's.")] = None,
    language: InLanguage = "en",
    as_json: Json = False,
) -> None:
    """Neighbours of words, a map of words, what a width costs, and which rows a training step moves.

    With --pair, several runs can be named: kotha inside embeddings RUN1 RUN2 --pair পড়ছে পড়েছে
    """
    found: dict[str, Any] = {}
    shown: list[Table | Text] = []
    folder, asked = model_and_words(run, words)
    if folder is None and (map_ or text or pair):
        folder = bundled.FOLDER
    if map_ is not None and map_.suffix.lower() not in (".html", ".htm"):
        raise UsageError("--map {map}: a map is a page; name a file that ends in .html", map=map_)
    if pair is not None and folder is not None:
        from kotha.inside.embeddings import distance_at_widths, open_table, pair_table

        runs = [folder, *map(place, asked)]
        tables = {bundled.title(each): open_table(open_model(each), each) for each in runs}
        measured = distance_at_widths(tables, *pair)
        rows = [{"run": name, **each.to_dict()} for name, each in measured.items()]
        found["pair"] = {"words": list(pair), "runs": rows}
        shown.append(pair_table(pair, measured))
    elif folder is not None:
        found, shown = _look(folder, asked, map_, text, count=count, centred=centred, map_words=map_words)
    if widths is not None or vocab_size is not None or not shown:
        from kotha.inside.token_table import WIDTHS, width_costs, width_table

        size = found.get("model", {}).get("vocab_size") if vocab_size is None else vocab_size
        if size is None:
            raise UsageError("say how many tokens: --vocab-size 32100, or name a run folder")
        try:
            costs = width_costs(size, WIDTHS if widths is None else [int(each) for each in widths.split(",")])
        except ValueError as error:
            raise UsageError(
                "--widths {widths}: write whole numbers with commas, such as 128,256,512", widths=widths
            ) from error
        found["widths"] = {"vocab_size": size, "rows": [asdict(each) for each in costs]}
        shown.append(width_table(size, costs))
    if as_json:
        print_json(found)
        return
    for each in shown:
        print_table(each)


def _look(
    run: Path, words: tuple[str, ...], map_: Path | None, text: str | None, **choice: Any
) -> "tuple[dict[str, Any], list[Table | Text]]":
    """What is asked about one model, as JSON has it and to read."""
    from kotha.inside.embeddings import embeddings_view, open_table
    from kotha.inside.token_table import touched_rows

    bundle = open_model(run)
    opened = open_table(bundle, run)
    view = embeddings_view(opened, words, name=run.resolve().name, **choice)
    for remark in view.remarks:
        notes().print(said(remark), markup=False)
    shown: list[Table | Text]
    found, shown = view.to_dict(), [*view.found.tables()]
    if not words:
        del found["words"]
    elif choice["centred"]:
        shown.append(
            Message("from the mean of all words (--plain: from zero), so that two random words have a cosine near 0")
        )
    if map_ is not None:
        drawn = view.found.map
        found["map"] = {"file": str(view.save(map_)), "words": len(drawn.dots), "shares": list(drawn.shares)}
        shown.append(
            Message(
                "Map: {path} ({words:,} words, {share:.1%} of their differences; open it in a browser)",
                path=map_,
                words=len(drawn.dots),
                share=sum(drawn.shares),
            )
        )
        if opened.counts is None:
            notes().print(
                said(Message("the run's data folder is not there: order in the vocabulary stands for frequency"))
            )
    if text is not None:
        touched = touched_rows(bundle.model, opened.tokenizer.encode(text))
        found["touched"] = asdict(touched)
        shown.append(touched.table())
    return found, shown
