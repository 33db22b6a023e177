"""The grammar: every choice is visible in the text, all options differ, and references to people and things agree."""

import itertools
import re
import unicodedata
from pathlib import Path

import pytest
from tests.text.stories.conftest import PLOTS, Replay

import kotha.text.stories as package
from kotha.text.stories.grammar import conjugate
from kotha.text.stories.lexicon import Noun, lexicon, phrases
from kotha.text.stories.plot import Plot, cast_roles, compile_template, tidy
from kotha.text.stories.scene import Chooser, Scene

LEXICON, PHRASES = lexicon(), phrases()
ALL_PLOTS = [plot for plots in PLOTS.values() for plot in plots]
NAMES = [plot.name for plot in ALL_PLOTS]


class Recorder(Chooser):
    """Records its choices."""

    def __init__(self, seed: str) -> None:
        super().__init__(seed)
        self.answers: list[int] = []

    def below(self, n: int) -> int:
        self.answers.append(super().below(n))
        return self.answers[-1]


def perform(plot: Plot, chooser: Chooser) -> tuple[str, Scene]:
    """The text of a plot and its final scene."""
    scene = Scene(chooser, LEXICON, cast_roles(plot.cast))
    return tidy(compile_template(plot.text, PHRASES)(scene)), scene


def performances(plot: Plot, count: int) -> list[tuple[str, Scene]]:
    write, cast = compile_template(plot.text, PHRASES), cast_roles(plot.cast)
    scenes = [Scene(Chooser(f"{plot.name}:{i}"), LEXICON, cast) for i in range(count)]
    return [(tidy(write(scene)), scene) for scene in scenes]


def by_name(name: str) -> Plot:
    return next(plot for plot in ALL_PLOTS if plot.name == name)


def test_there_are_enough_plots() -> None:
    assert len(PLOTS["story"]) >= 12
    assert len(PLOTS["news"]) >= 8
    assert len(PLOTS["entry"]) >= 8
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("plot", ALL_PLOTS, ids=NAMES)
def test_every_choice_shows_in_the_text(plot: Plot) -> None:
    recorder = Recorder(f"visible {plot.name}")
    text, _ = perform(plot, recorder)
    asked = Replay(recorder.answers)
    assert perform(plot, asked)[0] == text
    for k, (answer, n) in enumerate(zip(recorder.answers, asked.asked, strict=True)):
        if n > 1:
            changed = [*recorder.answers[:k], (answer + 1) % n, *recorder.answers[k + 1 :]]
            assert perform(plot, Replay(changed))[0] != text, f"choice {k} of {n} does not show in:\n{text}"


def brackets(template: str) -> list[list[str]]:
    """The alternatives of every bracket, as written."""
    found: list[list[str]] = []
    stack: list[list[str]] = []
    for token in re.findall(r"\{[^{}]*\}|[\[\]|]|[^\[\]|{}]+", " ".join(template.split())):
        if token == "[":
            stack.append([""])
        elif token == "]":
            options = stack.pop()
            found.append([re.sub(r"^(\?|\d~)", "", options[0]), *options[1:]])
            if stack:
                stack[-1][-1] += f"[{'|'.join(options)}]"
        elif stack and token == "|":
            stack[-1].append("")
        elif stack:
            stack[-1][-1] += token
    return found


@pytest.mark.parametrize("template", [*PHRASES.values(), *(plot.text for plot in ALL_PLOTS)])
def test_alternatives_differ(template: str) -> None:
    for options in brackets(template):
        trimmed = [option.strip() for option in options]
        assert len(set(trimmed)) == len(trimmed), trimmed


def tables(nouns: tuple[Noun, ...]) -> list[list[str]]:
    """The words in a table, including all their parts."""
    parts = [tables(part) for noun in nouns for part in noun.parts.values()]
    return [[noun.text for noun in nouns], *itertools.chain.from_iterable(parts)]


@pytest.mark.parametrize("name", sorted(LEXICON))
def test_words_of_a_table_differ(name: str) -> None:
    for words in tables(LEXICON[name]):
        assert len(set(words)) == len(words), [word for word in words if words.count(word) > 1]
        assert all(word and word == " ".join(word.split()) for word in words)


def test_sources_are_in_normal_form() -> None:
    for path in [each for kind in ("py", "txt", "json") for each in Path(package.__file__).parent.rglob(f"*.{kind}")]:
        source = path.read_text(encoding="utf-8")
        assert unicodedata.normalize("NFC", source) == source, f"{path} has letters that NFC writes otherwise"


@pytest.mark.parametrize("plot", ALL_PLOTS, ids=NAMES)
def test_rank_is_kept_from_first_to_last(plot: Plot) -> None:
    """No verb directly after a person's name, and no pronoun, has the wrong honorific level."""
    verbs = ("বলা", "দেওয়া", "যাওয়া", "করা", "আসা", "বসা", "দেখা", "নেওয়া", "থাকা", "জানা", "দাঁড়ানো", "শোনা")
    forms = {
        rank: {conjugate(v, tense, rank) for v in verbs for tense in ("past", "perfect", "was", "habit", "future")}
        for rank in ("সে", "তিনি")
    }
    for text, scene in performances(plot, 40):
        people = [noun for noun in scene.filled.values() if isinstance(noun, Noun)]
        ranks = {noun.text: noun.rank for noun in people}
        for name, rank in ranks.items():
            if rank in forms:
                after = set(re.findall(rf"(?<!\S){re.escape(name)} (\S+?)[।,]", text))
                other = forms["তিনি" if rank == "সে" else "সে"]
                assert not after & other, f"{name} is {rank}, but {after & other} in:\n{text}"
        if {"তিনি", "তাঁর", "তাঁকে"} & set(text.replace("।", " ").split()):
            assert "তিনি" in ranks.values(), text


@pytest.mark.parametrize("name", ["lost pet", "shared fruit", "new pupil", "found thing", "right change", "feast"])
def test_the_season_is_kept(name: str) -> None:
    months = {month.text for season in LEXICON["season"] for month in season.parts["month"]}
    for text, scene in performances(by_name(name), 60):
        own = {month.text for month in scene.noun("season").parts["month"]}
        assert months & set(text.split()) <= own, text


@pytest.mark.parametrize("name", ["muddy road", "apprentice", "promise kept"])
def test_a_trade_uses_its_own_tools(name: str) -> None:
    for _, scene in performances(by_name(name), 60):
        trade = scene.noun("trade")
        used = {scene.noun(role).text for role in scene.filled if role.startswith(("trade.tool", "trade.vital"))}
        assert used and used <= {tool.text for part in ("tool", "vital") for tool in trade.parts.get(part, ())}


def test_what_was_lost_is_what_was_found() -> None:
    things = {noun.text for noun in LEXICON["thing"]}
    for text, scene in performances(by_name("found thing"), 60):
        lost = scene.noun("thing").text
        assert text.count(lost) >= 3
        others = {thing for thing in things if f"{thing}টি" in text} - {lost}
        assert all(other in lost for other in others)


def test_relatives_have_the_names_of_the_community() -> None:
    for plot in PLOTS["story"]:
        for _, scene in performances(plot, 20):
            child = scene.filled.get("hero")
            elder = scene.filled.get("elder")
            if isinstance(child, Noun) and isinstance(elder, Noun) and "kin" in child.parts:
                assert elder.text in {noun.text for part in ("kin", "grand") for noun in child.parts[part]}
