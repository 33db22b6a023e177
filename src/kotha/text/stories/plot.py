"""Plots: the roles of a document and its text, in a small template language for Bangla prose.

::

    {hero}                    the word in a role                রহিম
    {hero র} {village এ}      in a case, named by its suffix    রহিমের, শিমুলতলায়    (র এ কে রা দের)
    {hero সে} {hero তার}      its pronoun, by rank              সে / তিনি, তার / তাঁর  (সে তার তাকে; তুমি তোমার তোমাকে)
    {had টি} {had অঙ্ক}       a number, counted or in digits    পাঁচটি, ৫              (টি টা জন খানা বার)
    {করা past hero}           a verb that agrees with a role    করল / করলেন
    {করা order bond}          … or with a form of address       কর / করো / করুন
    {trade.work joined}       a non-finite verb                 জাল ফেলে               (joined to if noun of)
    <weather> <says hero>     a shared phrase; its $ is replaced by the argument
    [ভোরে|সকালে]              one of the options
    [?খুব]                    optional
    [2~ক|খ|গ]                 two of the options, in either order

A line break counts as a space, but is ignored next to a bar and just inside a bracket; an empty line starts a new
paragraph. Templates are compiled once into functions of the scene.
"""

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kotha.text.stories.grammar import (
    CASES,
    FORMS,
    PERSONS,
    PRONOUNS,
    TENSES,
    conjugate,
    counted,
    digits,
    inflect,
    nonfinite,
    number,
)
from kotha.text.stories.lexicon import Noun, lexicon, phrases
from kotha.text.stories.scene import Chooser, Fill, Scene, parse_fill

Write = Callable[[Scene], str]
Rules = Mapping[str, str]

PRONOUN_CASES = {"সে": 0, "তার": 1, "তাকে": 2, "তুমি": 0, "তোমার": 1, "তোমাকে": 2}
TOKENS = re.compile(r"\{[^{}]*\}|<\w+(?: \w+)?>|[\[\]|]|[^\[\]|{}<>]+")


def compile_template(text: str, rules: Rules) -> Write:
    """Compile a template into a function from a scene to text."""
    prose = re.sub(r"[ \t]*\n[ \t]*", "\n", text.strip())
    prose = re.sub(r"\n(?=[|\]])|(?<=[|\[])\n", "", prose)
    prose = re.sub(r"\n\n+", "\0", prose).replace("\n", " ").replace("\0", "\n")
    tokens = TOKENS.findall(prose)
    assert "".join(tokens) == prose, f"an unmatched bracket in: {prose}"
    tokens.reverse()
    write = _sequence(tokens, rules)
    assert not tokens, f"a closing bracket without an opening one in: {prose}"
    return write


def tidy(text: str) -> str:
    """Remove the extra spaces around omitted optional parts."""
    while "  " in text:
        text = text.replace("  ", " ")
    return text.replace("\n ", "\n").replace(" \n", "\n").strip()


def _sequence(tokens: list[str], rules: Rules) -> Write:
    """Compile up to the end of the template or of an option; tokens are removed from the end of the list."""
    parts: list[str | Write] = []
    while tokens and tokens[-1] not in "|]":
        token = tokens.pop()
        if token == "[":
            parts.append(_bracket(tokens, rules))
        elif token[0] == "{":
            parts.append(_hole(token[1:-1]))
        elif token[0] == "<":
            name, _, argument = token[1:-1].partition(" ")
            assert name in rules, f"no shared phrase {name}"
            parts.append(compile_template(rules[name].replace("$", argument), rules))
        else:
            parts.append(token)
    return lambda scene: "".join([part if isinstance(part, str) else part(scene) for part in parts])


def _bracket(tokens: list[str], rules: Rules) -> Write:
    """Compile the rest of a bracket: ``a|b]``, ``?a]`` or ``2~a|b|c]``."""
    optional, several = False, 0
    if mark := re.match(r"\?|(\d)~", tokens[-1]):
        optional, several = mark[0] == "?", int(mark[1] or 0)
        tokens[-1] = tokens[-1][mark.end() :]
        if not tokens[-1]:
            tokens.pop()
    options = [_sequence(tokens, rules)]
    while tokens and tokens.pop() == "|":
        options.append(_sequence(tokens, rules))
    n = len(options)
    if several:
        return lambda scene: " ".join([options[i](scene) for i in scene.chooser.several(several, n)])
    # The choice to omit the part comes first, because an omitted part has no further choices.
    return lambda scene: "" if optional and scene.chooser.below(2) else options[scene.chooser.below(n)](scene)


def _hole(source: str) -> Write:
    """Compile one ``{…}``: a role, a role in a case, or a verb."""
    name, *modifiers = source.split(" ")
    if not modifiers:
        return lambda scene: _plain(scene, name)
    modifier = modifiers[0]
    if modifier in TENSES:
        (subject,) = modifiers[1:]
        person = (lambda scene: subject) if subject in PERSONS else lambda scene: scene.person(subject)
        return lambda scene: conjugate(_phrase(scene, name), modifier, person(scene))
    assert len(modifiers) == 1, f"{{{source}}} has too many parts"
    if modifier in FORMS:
        return lambda scene: nonfinite(_phrase(scene, name), modifier)
    if modifier in PRONOUN_CASES:
        return lambda scene: PRONOUNS[scene.person(name)][PRONOUN_CASES[modifier]]
    if modifier in CASES:
        return lambda scene: inflect(scene.noun(name).text, modifier)
    if modifier == "অঙ্ক":
        return lambda scene: digits(scene.value(name))
    assert modifier in ("টি", "টা", "জন", "খানা", "বার"), f"{{{source}}}: {modifier} is not a case, tense or classifier"
    return lambda scene: counted(scene.value(name), modifier)


def _plain(scene: Scene, name: str) -> str:
    found = scene.role(name)
    return found.text if isinstance(found, Noun) else number(found)


def _phrase(scene: Scene, name: str) -> str:
    """Return a literal verb phrase (জাল_ফেলা), or the verb phrase in a role."""
    return scene.noun(name).text if name[0].isascii() else name.replace("_", " ")


_FOLDER = Path(__file__).with_name("plots")
# Plot files by kind of document; a new plot belongs in the file of its subject.
_SUBJECTS = {
    "story": ("childhood", "kindness", "work"),
    "news": ("gatherings", "fields"),
    "entry": ("nature", "lives"),
}


@dataclass(frozen=True, slots=True)
class Plot:
    """A document template: its name, the roles that are not named after their table (``cast``), title and text."""

    name: str
    cast: str
    text: str


def parse_plots(text: str) -> tuple[Plot, ...]:
    r"""Parse a plot file: for each plot, its name, the cast, an empty line, the title and the paragraphs.

    >>> parse_plots("# lost pet\nhero: child; elder: hero.kin\n\n{hero র} গল্প\n\n{elder} ডাকলেন।")[0].cast
    'hero: child; elder: hero.kin'
    """
    plots = []
    for section in text.split("# ")[1:]:
        heading, _, prose = section.strip().partition("\n\n")
        name, _, cast = heading.partition("\n")
        plots.append(Plot(name, cast, prose))
    return tuple(plots)


def cast_roles(cast: str) -> dict[str, Fill]:
    """Return the roles of a cast by name.

    >>> sorted(cast_roles("hero: child; elder: hero.kin"))
    ['elder', 'hero']
    """
    pairs = (entry.split(":") for entry in cast.split(";") if entry.strip())
    return {name.strip(): parse_fill(spec.strip()) for name, spec in pairs}


@functools.cache
def plots() -> dict[str, tuple[Plot, ...]]:
    """Return all plots by kind of document."""
    return {
        kind: tuple(plot for subject in subjects for plot in parse_plots(read_plots(subject)))
        for kind, subjects in _SUBJECTS.items()
    }


def read_plots(subject: str) -> str:
    """Return the text of a plot file."""
    return (_FOLDER / f"{subject}.txt").read_text(encoding="utf-8")


class WrittenStory(NamedTuple):
    """A document's text and its scene, in which all roles are filled."""

    text: str
    scene: Scene


@functools.cache
def compile_plot(plot: Plot) -> Callable[[Chooser], WrittenStory]:
    """Compile a plot into a function that takes a chooser and returns a document."""
    write = compile_template(plot.text, phrases())
    cast = cast_roles(plot.cast)

    def write_story(chooser: Chooser) -> WrittenStory:
        scene = Scene(chooser, lexicon(), cast)
        return WrittenStory(tidy(write(scene)), scene)

    return write_story
