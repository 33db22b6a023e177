"""``kotha inside embeddings``: the token table of a model, from several sides."""

from typing import Annotated

from cyclopts import Parameter

from kotha.cli.flags import BOX, Page, RunName
from kotha.cli.naming import model_and_words
from kotha.cli.terminal import Output
from kotha.errors import UsageError


def embeddings(
    run: RunName = None,
    /,
    *words: str,
    count: int = 10,
    centred: Annotated[bool, Parameter(negative="--plain")] = True,
    map_: Annotated[Page, Parameter(name="--map")] = None,
    map_words: int = 300,
    text: str | None = None,
    widths: str | None = None,
    vocab_size: int | None = None,
) -> Output:
    """Neighbours of a word, a map of words, and what a width costs.

    Args:
        words: Words to look up.
        count: Neighbours of each word.
        centred: Take the mean of all words away first.
        map_: Write a map of words to this .html file.
        map_words: How many of the most frequent words it shows.
        text: Tell which rows one training step on this text would touch.
        widths: Widths for the table of costs, such as 128,256,512.
        vocab_size: Vocabulary for that table; left out: the model's.
    """
    from kotha.api.embeddings import WordsReport

    found = WordsReport()
    folder, asked = model_and_words(run, words)
    if folder is None and (map_ or text):
        folder = BOX
    if map_ is not None and map_.suffix.lower() not in (".html", ".htm"):
        raise UsageError("--map {map}: a map is a page; name a file that ends in .html", map=map_)
    if folder is not None:
        found.look(folder, asked, map_, text, count=count, centred=centred, map_words=map_words)
    if widths is not None or vocab_size is not None or not found.shown:
        found.cost(_numbers(widths), vocab_size)
    return Output(found, *found.shown)


def _numbers(widths: str | None) -> list[int] | None:
    try:
        return None if widths is None else [int(each) for each in widths.split(",")]
    except ValueError as error:
        told = "--widths {widths}: write whole numbers with commas, such as 128,256,512"
        raise UsageError(told, widths=widths) from error
