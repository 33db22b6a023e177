"""``kotha inside embeddings``: the token table of a model, from several sides."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from kotha.cli.inside.opening import open_model
from kotha.cli.terminal import notes, print_json, results, table
from kotha.errors import UsageError

if TYPE_CHECKING:
    from kotha.inside.embeddings.words import Embeddings
    from kotha.model.family import Model


def embeddings(
    run: Annotated[Path | None, Parameter(help="A run folder (its best model), or a model folder.")] = None,
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
    as_json: Annotated[bool, Parameter(name="--json", negative="", help="One JSON object on stdout.")] = False,
) -> None:
    """Neighbours of words, a map of words, what a width costs, and which rows a training step moves.

    With --pair, several runs can be named: kotha inside embeddings RUN1 RUN2 --pair পড়ছে পড়েছে
    """
    if count < 1 or map_words < 1:
        raise UsageError("--count and --map-words take whole numbers from 1")
    found: dict[str, Any] = {}
    if run is None and (words or map_ or text or pair):
        raise UsageError("name a run folder first: kotha inside embeddings RUN WORD…")
    if pair is not None and run is not None:
        found["pair"] = {"words": list(pair), "runs": _pairs([run, *(Path(each) for each in words)], pair)}
    elif run is not None:
        found |= _look(run, words, count, centred, (map_, map_words), text)
    asked = any(key in found for key in ("pair", "words", "map", "touched"))
    if widths is not None or vocab_size is not None or not asked:
        found["widths"] = _widths(widths, vocab_size, found.get("model", {}).get("vocab_size"))
    if as_json:
        print_json(found)
    else:
        _print(found)


def _open(run: Path) -> tuple["Model", "Embeddings"]:
    """A model and its table; tokens are counted if the run's data folder is still there."""
    from kotha.evaluate.baselines import find_data
    from kotha.inside.embeddings.words import Embeddings, token_counts
    from kotha.runs import run_config

    opened = open_model(run)
    data = find_data(run_config(run), run)
    return opened.model, Embeddings(opened.model, opened.tokenizer, None if data is None else token_counts(data))


def _look(
    run: Path, words: tuple[str, ...], count: int, centred: bool, map_: tuple[Path | None, int], text: str | None
) -> dict[str, Any]:
    """What is asked about one model."""
    from dataclasses import asdict

    from kotha.inside.embeddings.neighbours import nearest_words
    from kotha.inside.embeddings.touched import touched_rows

    model, known = _open(run)
    looked_up = [known.find(each) for each in words]
    for word in looked_up:
        if not word.learned:
            said = f"{word.text}: training met its rarest piece {word.seen} times, too seldom to place it"
            notes().print(said, markup=False)
    near = [(word, nearest_words(known, word, count, centred)) for word in looked_up]
    vocab_size, width = known.vectors.shape
    found: dict[str, Any] = {"model": {"vocab_size": vocab_size, "width": width, "centred": centred}}
    if near:
        found["words"] = [
            {
                **{"word": word.text, "pieces": list(word.pieces), "mean_of_pieces": not word.whole, "seen": word.seen},
                "neighbours": [asdict(each) for each in neighbours],
            }
            for word, neighbours in near
        ]
    if text is not None:
        found["touched"] = touched_rows(model, known.tokenizer.encode(text)).to_dict()
    if map_[0] is not None:
        found["map"] = _write_map(map_[0], run, known, near, map_[1], centred)
    return found


def _write_map(
    file: Path, run: Path, known: "Embeddings", near: list[Any], count: int, centred: bool
) -> dict[str, Any]:
    from kotha.files import write_whole
    from kotha.inside.embeddings.page import embeddings_page
    from kotha.inside.embeddings.plane import word_map

    if file.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"--map {file}: a map is a page; name a file that ends in .html")
    found = word_map(known, [word for word, _ in near], count)
    write_whole(file, embeddings_page(f"Words of {run.resolve().name}", found, near, centred))
    if known.counts is None:
        notes().print("the run's data folder is not there: order in the vocabulary stands for how frequent a word is")
    return {"file": str(file), "words": len(found.dots), "shares": list(found.shares)}


def _pairs(runs: list[Path], pair: tuple[str, str]) -> list[dict[str, Any]]:
    from kotha.inside.embeddings.pairs import distance_at_widths

    tables = {str(run): _open(run)[1] for run in runs}
    return [{"run": run, **each.to_dict()} for run, each in distance_at_widths(tables, *pair).items()]


def _widths(widths: str | None, vocab_size: int | None, of_model: int | None) -> dict[str, Any]:
    from kotha.inside.embeddings.widths import WIDTHS, width_costs

    if vocab_size is None and of_model is None:
        raise UsageError("say how many tokens: --vocab-size 32100, or name a run folder")
    try:
        chosen = [int(each) for each in widths.split(",")] if widths is not None else list(WIDTHS)
    except ValueError as error:
        raise UsageError(f"--widths {widths}: write whole numbers with commas, such as 128,256,512") from error
    size = vocab_size if vocab_size is not None else of_model or 0
    return {"vocab_size": size, "rows": [each.to_dict() for each in width_costs(size, chosen)]}


# -- printing ---------------------------------------------------------------------------------------------------------


def _print(found: dict[str, Any]) -> None:
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
        _print_pair(found["pair"])
    if "widths" in found:
        header = ["width", "parameters", "MiB in float32", "MiB in bfloat16", "MiB to train with AdamW"]
        names = ("float32_mib", "bfloat16_mib", "training_mib")
        rows = [
            [f"{each['width']:,}", f"{each['parameters']:,}", *(f"{each[name]:,.2f}" for name in names)]
            for each in found["widths"]["rows"]
        ]
        console.print(table(f"a table of {found['widths']['vocab_size']:,} tokens", header, rows))


def _print_touched(touched: dict[str, Any]) -> None:
    size = touched["vocab_size"]
    rows = [
        [name, f"{touched[key]:,}", f"{touched[key] / size:.2%}"]
        for name, key in (
            ("by being read (lookup)", "looked_up"),
            ("by being scored (softmax in the head)", "scored"),
            ("rows of the token table in all", "token_table"),
        )
    ]
    read = f"{touched['tokens']:,} tokens read, {touched['distinct']:,} different ones"
    results().print(table(f"rows with a gradient: {read}", ["", "rows", f"of {size:,}"], rows))
    if touched["tied"]:
        results().print(
            "the head uses the same table, so every row moves; "
            f"{touched['looked_up_share']:.1%} of the squared gradient came by reading"
        )
    else:
        results().print("the head has a table of its own: rows of tokens that were not read stay as they are")


def _print_pair(pair: dict[str, Any]) -> None:
    rows = [
        [
            each["run"],
            f"{each['width']:,}",
            *(f"{each[name]:.3f}" for name in ("cosine", "random_cosine", "distance", "random_distance", "relative")),
            f"{each['rank']:,}",
        ]
        for each in pair["runs"]
    ]
    header = ["run", "width", "cosine", "random", "distance", "random", "share of random", "neighbour no."]
    results().print(table(" and ".join(pair["words"]), header, rows))
    if any(max(each["pieces"]) > 1 for each in pair["runs"]):
        results().print("a word that is not one token is the mean of its pieces")
