"""``kotha inside embeddings``: the token table of a model, from several sides."""

from typing import Annotated

from cyclopts import Parameter

from kotha.api.options import WordsOptions
from kotha.cli.flags import BOX, FlatMany, Page, Run
from kotha.cli.terminal import Output
from kotha.errors import UsageError


def embeddings(
    run: Run = BOX,
    /,
    *words: str,
    map_: Annotated[Page, Parameter(name="--map")] = None,
    options: Annotated[WordsOptions, FlatMany] = WordsOptions(),  # noqa: B008 - frozen
) -> Output:
    """Neighbours of a word, a map of words, and what a width costs.

    Args:
        words: Words to look up; with --pair, more run folders.
        map_: Write a map of words to this .html file.
    """
    from kotha.api.embeddings import look_up

    if map_ is not None and map_.suffix.lower() not in (".html", ".htm"):
        raise UsageError("--map {map}: a map is a page; name a file that ends in .html", map=map_)
    report = look_up(run, words, options, map_)
    return Output(report, *report.shown, remarks=report.remarks)
