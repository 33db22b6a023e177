"""``kotha inside embeddings``: the token table of a model, from several sides."""

from typing import Annotated, Any

from cyclopts import Parameter

from kotha.cli.options import BOX, Page, Run
from kotha.cli.terminal import Output
from kotha.errors import UsageError


def embeddings(
    run: Run = BOX,
    /,
    *words: str,
    count: int = 10,
    centred: Annotated[bool, Parameter(negative="--plain")] = True,
    map_: Annotated[Page, Parameter(name="--map")] = None,
    map_words: int = 300,
    text: str | None = None,
) -> Output:
    """Neighbours of a word, a map of words, and which rows a text touches.

    Args:
        words: Words to look up.
        count: Neighbours of each word.
        centred: Take the mean of all words away first.
        map_: Write a map of words to this .html file.
        map_words: How many of the most frequent words it shows.
        text: Tell which rows one training step on this text would touch.
    """
    from kotha.api.embeddings import look

    if not (words or map_ or text):
        raise UsageError("name a word, --map FILE or --text TEXT; see kotha inside embeddings --help")
    choice: Any = {"count": count, "centred": centred, "map_words": map_words}
    found = look(run, words, map_, text, **choice)
    return Output(found, *found.shown)
