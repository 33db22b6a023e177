"""``kotha inside embeddings``: the token table of a model, from several sides."""

from pathlib import Path
from typing import Annotated

from kotha.cli.flags import BOX, InLanguage, Json, RunName, flag, page
from kotha.cli.naming import model_and_words, place
from kotha.cli.spoken import tell
from kotha.cli.terminal import show
from kotha.errors import UsageError


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
    from kotha.api.embeddings import WordsReport

    found = WordsReport()
    folder, asked = model_and_words(run, words)
    if folder is None and (map_ or text or pair):
        folder = BOX
    if map_ is not None and map_.suffix.lower() not in (".html", ".htm"):
        raise UsageError("--map {map}: a map is a page; name a file that ends in .html", map=map_)
    if pair is not None and folder is not None:
        found.compare_pair(pair, [folder, *map(place, asked)])
    elif folder is not None:
        found.look(folder, asked, map_, text, count=count, centred=centred, map_words=map_words)
    if widths is not None or vocab_size is not None or not found.shown:
        found.cost(_numbers(widths), vocab_size)
    for remark in found.remarks:
        tell(remark)
    show(found, as_json, *found.shown)


def _numbers(widths: str | None) -> list[int] | None:
    try:
        return None if widths is None else [int(each) for each in widths.split(",")]
    except ValueError as error:
        raise UsageError(
            "--widths {widths}: write whole numbers with commas, such as 128,256,512", widths=widths
        ) from error
