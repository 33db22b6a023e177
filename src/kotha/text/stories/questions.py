"""Questions about generated stories, with answers from the grammar: instruction data without external sources.

``plots/questions.txt`` contains templates in the template language of the plots, so a question uses the words of its
story: ``{hero} {friend}কে কয়টি {season.pick} দিল? = {gave টি}``. The passage of a question is one paragraph of its
story (or the whole story) and contains the answer verbatim. Questions about optional parts that a story omits are
dropped.
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
    """A question, the passage that answers it, and the answer; ``story`` is the index of the story."""

    story: int
    kind: str
    passage: str
    question: str
    answer: str

    @property
    def instruction(self) -> str:
        """The instruction for a model: the passage, then the question."""
        return f"{self.passage}\n\n{self.question}"


# A compiled line of the file: paragraph of the body (from 1), kind, question and answer.
_Template = tuple[int, str, Write, Write]


class _UnresolvedError(Exception):
    """Raised if a question refers to a choice that was not made in its story."""


class _FrozenChooser(Chooser):
    """Raises an error instead of choosing a word, so that a question adds no choices to a finished story."""

    def below(self, n: int) -> int:
        """See Chooser."""
        raise _UnresolvedError


def questions_about(seed: int, story: int, *, per_story: int = 3, whole: bool = False) -> list[StoryQuestion]:
    """Return up to ``per_story`` questions about one story; the result is the same on every platform."""
    templates = _templates()
    known = [plot for same_kind in plots().values() for plot in same_kind if plot.name in templates]
    chooser = Chooser(f"questions:{seed}:{story}")
    plot = known[chooser.below(len(known))]
    written = compile_plot(plot)(chooser)
    order = chooser.several(len(templates[plot.name]), len(templates[plot.name]))
    written.scene.chooser = _FrozenChooser("")
    body = len(re.split(r"\n\n+", plot.text.strip())) - 1  # paragraphs after the title, which may be absent
    paragraphs = written.text.split("\n")[-body:]
    found: list[StoryQuestion] = []
    for index in order:
        paragraph, kind, write_question, write_answer = templates[plot.name][index]
        passage = written.text if whole else paragraphs[paragraph - 1]
        with suppress(_UnresolvedError):
            question, answer = write_question(written.scene), write_answer(written.scene)
            if answer in passage:
                found.append(StoryQuestion(story, kind, passage, question, f"{answer}।"))
    return found[:per_story]


@cache
def _templates() -> dict[str, list[_Template]]:
    """Return the question templates of each plot by its name."""
    found: dict[str, list[_Template]] = {}
    for section in read_plots("questions").split("# ")[1:]:
        name, *lines = section.strip().split("\n")
        for line in lines:
            parts = _LINE.fullmatch(line)
            assert parts is not None and parts[2] in KINDS_OF_QUESTIONS, f"not a question: {line}"
            question, answer = (compile_template(part, phrases()) for part in (parts[3], parts[4]))
            found.setdefault(name, []).append((int(parts[1]), parts[2], question, answer))
    return found
