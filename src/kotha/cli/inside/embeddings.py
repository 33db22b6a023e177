"""``kotha inside embeddings``: inspect a model's embedding table."""

from typing import Annotated, Any

from cyclopts import Parameter

from kotha.cli.model_argument import model_and_words
from kotha.cli.options import Page, RunName
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
) -> Output:
    """Show the nearest neighbours of words, a map of words, or the rows that training on a text would change.

    Example: `kotha inside embeddings run মা নদী --map words.html`

    Args:
        words: Words to look up.
        count: Number of neighbours per word.
        centred: Subtract the mean of all word vectors before they are compared.
        map_: Output .html file for a map of words.
        map_words: Number of frequent words on the map.
        text: Report which embedding rows a training step on this text would change.
    """
    from kotha.api.embeddings import look

    folder, words = model_and_words(run, words, "inside embeddings")
    if not (words or map_ or text):
        raise UsageError("give a word, --map FILE or --text TEXT; see kotha inside embeddings --help")
    choice: Any = {"count": count, "centred": centred, "map_words": map_words}
    found = look(folder, words, map_, text, **choice)
    return Output(found, *found.shown)
