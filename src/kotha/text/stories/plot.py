"""A plot: who is in it, and its text with holes."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kotha.text.stories.chooser import Chooser
from kotha.text.stories.lexicon import lexicon, phrases
from kotha.text.stories.scene import Fill, Scene, parse_fill
from kotha.text.stories.template import compile_template, tidy

_FOLDER = Path(__file__).with_name("plots")
# The files of plots, by kind of document. To add a plot, write it in the file whose subject it shares.
_SUBJECTS = {
    "story": ("childhood", "kindness", "work"),
    "news": ("gatherings", "fields"),
    "entry": ("nature", "lives"),
}


@dataclass(frozen=True, slots=True)
class Plot:
    """One way for a document to go: a name, what fills each role not named after its table, and title and text."""

    name: str
    cast: str
    text: str


def parse_plots(text: str) -> tuple[Plot, ...]:
    r"""Plots as they are written: a name, the cast under it, the title after an empty line, then the paragraphs.

    >>> parse_plots("# lost pet\nhero: child; elder: hero.kin\n\n{hero র} গল্প\n\n{elder} ডাকলেন।")[0].cast
    'hero: child; elder: hero.kin'
    """
    plots = []
    for written in text.split("# ")[1:]:
        heading, _, prose = written.strip().partition("\n\n")
        name, _, cast = heading.partition("\n")
        plots.append(Plot(name, cast, prose))
    return tuple(plots)


def cast_roles(cast: str) -> dict[str, Fill]:
    """The roles of a cast by name.

    >>> sorted(cast_roles("hero: child; elder: hero.kin"))
    ['elder', 'hero']
    """
    pairs = (entry.split(":") for entry in cast.split(";") if entry.strip())
    return {name.strip(): parse_fill(spec.strip()) for name, spec in pairs}


@functools.cache
def plots() -> dict[str, tuple[Plot, ...]]:
    """All plots, by kind of document."""
    return {
        kind: tuple(plot for subject in subjects for plot in parse_plots(read_plots(subject)))
        for kind, subjects in _SUBJECTS.items()
    }


def read_plots(subject: str) -> str:
    """The text of a file of plots."""
    return (_FOLDER / f"{subject}.txt").read_text(encoding="utf-8")


class ToldStory(NamedTuple):
    """A document, and who and what it has named."""

    text: str
    scene: Scene


@functools.cache
def compile_plot(plot: Plot) -> Callable[[Chooser], ToldStory]:
    """Turn a plot into a function from a chooser to a document."""
    write = compile_template(plot.text, phrases())
    cast = cast_roles(plot.cast)

    def tell(chooser: Chooser) -> ToldStory:
        scene = Scene(chooser, lexicon(), cast)
        return ToldStory(tidy(write(scene)), scene)

    return tell
