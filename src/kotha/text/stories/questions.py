"""Questions about stories, with answers that the grammar knows: instruction pairs from no outside data.

``plots/questions.txt`` asks in the language of the plots themselves, so a question speaks of the very words that a
story was told with: ``{hero} {friend}কে কয়টি {season.pick} দিল? = {gave টি}``. A question reads from one paragraph of
its story (or from all of it), and its answer stands there word for word. What a story happened not to say is not asked.
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from kotha.text.stories.lexicon import phrases
from kotha.text.stories.plot import Write, compile_plot, compile_template, plots, read_plots
from kotha.text.stories.scene import Chooser

KINDS_OF_QUESTIONS = ("who", "what", "where", "when", "how-many", "left")
_LINE = re.compile(r"(\d) (\S+) (.+\?) = (.+)")


@dataclass(frozen=True, slots=True)
class StoryQuestion:
    """A question, the text that answers it, and the answer; ``story`` is the number of the story it is about."""

    story: int
    kind: str
    passage: str
    question: str
    answer: str

    @property
    def instruction(self) -> str:
        """What a model is asked: the passage, then the question."""
        return f"{self.passage}\n\n{self.question}"


# A line of the file, compiled: a paragraph of the body from 1, the kind, the question and the answer.
_Asking = tuple[int, str, Write, Write]


class _UnsaidError(Exception):
    """A question speaks of what its story has left open."""


class _Settled(Chooser):
    """Decides nothing more, so that asking adds nothing to a story that has been told."""

    def below(self, n: int) -> int:
        """See Chooser."""
        raise _UnsaidError


def questions_about(seed: int, story: int, *, per_story: int = 3, whole: bool = False) -> list[StoryQuestion]:
    """The questions about one story: a pure function, on every platform."""
    asked = _questions()
    known = [plot for some in plots().values() for plot in some if plot.name in asked]
    chooser = Chooser(f"questions:{seed}:{story}")
    plot = known[chooser.below(len(known))]
    told = compile_plot(plot)(chooser)
    order = chooser.several(len(asked[plot.name]), len(asked[plot.name]))
    told.scene.chooser = _Settled("")
    body = len(re.split(r"\n\n+", plot.text.strip())) - 1  # paragraphs after the title, which may be absent
    paragraphs = told.text.split("\n")[-body:]
    found: list[StoryQuestion] = []
    for place in order:
        paragraph, kind, ask, reply = asked[plot.name][place]
        passage = told.text if whole else paragraphs[paragraph - 1]
        with suppress(_UnsaidError):
            question, answer = ask(told.scene), reply(told.scene)
            if answer in passage:
                found.append(StoryQuestion(story, kind, passage, question, f"{answer}।"))
    return found[:per_story]


@cache
def _questions() -> dict[str, list[_Asking]]:
    """What is asked about each plot, by its name."""
    found: dict[str, list[_Asking]] = {}
    for written in read_plots("questions").split("# ")[1:]:
        name, *lines = written.strip().split("\n")
        for line in lines:
            parts = _LINE.fullmatch(line)
            assert parts is not None and parts[2] in KINDS_OF_QUESTIONS, f"no question: {line}"
            question, answer = (compile_template(part, phrases()) for part in (parts[3], parts[4]))
            found.setdefault(name, []).append((int(parts[1]), parts[2], question, answer))
    return found
