"""``kotha inside embeddings``: the token table of a model, from several sides."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from kotha.cli.inside.opening import Json, RunOrNone, open_model
from kotha.cli.terminal import notes, print_json, results, table
from kotha.errors import UsageError

_COSTS = ("float32", "bfloat16", "training")


def embeddings(
    run: RunOrNone = None,
    /,
    *words: Annotated[str, Parameter(help="Words to look up; with --pair, more run folders.")],
    count: Annotated[int, Parameter(help="Neighbours of each word.")] = 10,
    centred: Annotated[bool, Parameter(negative="--plain", help="Take the mean of all words away first.")] = True,
    map_: Annotated[Path | None, Parameter(name="--map", help="Write a map of words to this .html file.")] = None,
    map_words: Annotated[int, Parameter(help="How many of the most frequent words it shows.")] = 300,
    text: Annotated[str | None, Parameter(help="Tell which rows one training step on this text would touch.")] = None,
    pair: Annotated[tuple[str, str] | None, Parameter(help="Two words: how far apart they stand in each run.")] = None,
    widths: Annotated[str | None, Parameter(help="Widths for the table of costs, such as 128,256,512.")] = None,
    vocab_size: Annotated[int | None, Parameter(help="Vocabulary for that table; left out: the model's.")] = None,
    as_json: Json = False,
) -> None:
    """Neighbours of words, a map of words, what a width costs, and which rows a training step moves.

    With --pair, several runs can be named: kotha inside embeddings RUN1 RUN2 --pair পড়ছে পড়েছে
    """
    found: dict[str, Any] = {}
    if run is None and (words or map_ or text or pair):
        raise UsageError("name a run folder first: kotha inside embeddings RUN WORD…")
    if pair is not None and run is not None:
        from kotha.inside.embeddings.near import distance_at_widths
        from kotha.inside.embeddings.words import open_table

        tables = {str(each): open_table(open_model(each), each) for each in (run, *map(Path, words))}
        runs = [{"run": name, **each.to_dict()} for name, each in distance_at_widths(tables, *pair).items()]
        found["pair"] = {"words": list(pair), "runs": runs}
    elif run is not None:
        choice: dict[str, Any] = {"count": count, "centred": centred, "map_words": map_words}
        found |= _look(run, words, map_, text, choice)
    asked = any(key in found for key in ("pair", "words", "map", "touched"))
    if widths is not None or vocab_size is not None or not asked:
        found["widths"] = _widths(widths, vocab_size, found.get("model", {}).get("vocab_size"))
    if as_json:
        print_json(found)
    else:
        _print(found)


def _look(
    run: Path, words: tuple[str, ...], map_: Path | None, text: str | None, choice: dict[str, Any]
) -> dict[str, Any]:
    """What is asked about one model."""
    from kotha.inside.embeddings.page import embeddings_view
    from kotha.inside.embeddings.touched import touched_rows
    from kotha.inside.embeddings.words import open_table

    if map_ is not None and map_.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"--map {map_}: a map is a page; name a file that ends in .html")
    bundle = open_model(run)
    opened = open_table(bundle, run)
    view = embeddings_view(opened, words, name=run.resolve().name, **choice)
    for remark in view.remarks:
        notes().print(remark, markup=False)
    found = view.to_dict()
    if not words:
        del found["words"]
    if text is not None:
        found["touched"] = asdict(touched_rows(bundle.model, opened.tokenizer.encode(text)))
    if map_ is not None:
        drawn = view.found.map
        found["map"] = {"file": str(view.save(map_)), "words": len(drawn.dots), "shares": list(drawn.shares)}
        if opened.counts is None:
            notes().print("the run's data folder is not there: order in the vocabulary stands for frequency")
    return found


def _widths(widths: str | None, vocab_size: int | None, of_model: int | None) -> dict[str, Any]:
    from kotha.inside.embeddings.widths import WIDTHS, width_costs

    size = of_model if vocab_size is None else vocab_size
    if size is None:
        raise UsageError("say how many tokens: --vocab-size 32100, or name a run folder")
    try:
        chosen = [int(each) for each in widths.split(",")] if widths is not None else list(WIDTHS)
    except ValueError as error:
        raise UsageError(f"--widths {widths}: write whole numbers with commas, such as 128,256,512") from error
    return {"vocab_size": size, "rows": [asdict(each) for each in width_costs(size, chosen)]}


def _print(found: dict[str, Any]) -> None:
    """Print whatever was asked for."""
    console = results()
    for each in found.get("words", []):
        rows = [[near["text"], f"{near['cosine']:.3f}"] for near in each["neighbours"]]
        console.print(table(each["word"], ["nearest", "cosine"], rows))
        if each["mean_of_pieces"]:
            pieces = " + ".join(each["pieces"])
            console.print(f"{each['word']} is not one token: this is the mean of {pieces}", markup=False)
    if "words" in found and found["model"]["centred"]:
        console.print("from the mean of all words (--plain: from zero), so that two random words have a cosine near 0")
    if "map" in found:
        shown = sum(found["map"]["shares"])
        words = f"{found['map']['words']:,} words, {shown:.1%} of their differences"
        console.print(f"Map: {found['map']['file']} ({words}; open it in a browser)", markup=False)
    if "touched" in found:
        _print_touched(found["touched"])
    if "pair" in found:
        header = ["run", "width", "cosine", "random", "distance", "random", "share of random", "neighbour no."]
        names = ("cosine", "random_cosine", "distance", "random_distance", "relative")
        rows = [
            [each["run"], f"{each['width']:,}", *(f"{each[name]:.3f}" for name in names), f"{each['rank']:,}"]
            for each in found["pair"]["runs"]
        ]
        console.print(table(" and ".join(found["pair"]["words"]), header, rows))
        if any(max(each["pieces"]) > 1 for each in found["pair"]["runs"]):
            console.print("a word that is not one token is the mean of its pieces")
    if "widths" in found:
        header = ["width", "parameters", "MiB in float32", "MiB in bfloat16", "MiB to train with AdamW"]
        rows = [
            [f"{each['width']:,}", f"{each['parameters']:,}", *(f"{each[f'{name}_mib']:,.2f}" for name in _COSTS)]
            for each in found["widths"]["rows"]
        ]
        console.print(table(f"a table of {found['widths']['vocab_size']:,} tokens", header, rows))


def _print_touched(touched: dict[str, Any]) -> None:
    size, ways = (
        touched["vocab_size"],
        {
            "by being read (lookup)": "looked_up",
            "by being scored (softmax in the head)": "scored",
            "rows of the token table in all": "token_table",
        },
    )
    rows = [[name, f"{touched[key]:,}", f"{touched[key] / size:.2%}"] for name, key in ways.items()]
    read = f"{touched['tokens']:,} tokens read, {touched['distinct']:,} different ones"
    results().print(table(f"rows with a gradient: {read}", ["", "rows", f"of {size:,}"], rows))
    if touched["tied"]:
        share = f"{touched['looked_up_share']:.1%} of the squared gradient came by reading"
        results().print(f"the head uses the same table, so every row moves; {share}")
    else:
        results().print("the head has a table of its own: rows of tokens that were not read stay as they are")
