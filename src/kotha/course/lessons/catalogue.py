"""The list of lessons with their questions, durations, measures and texts; it does not need torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kotha.course.data import data_file
from kotha.errors import UsageError, nearest
from kotha.i18n.message import Bilingual

FOLDER = Path(__file__).parent / "words"


@dataclass(frozen=True)
class Lesson:
    """A lesson, with its question and duration."""

    name: str
    told: Mapping[str, Any]  # its entry in ``lessons.json``

    @property
    def minutes(self) -> float:
        """Measured duration in minutes for three seeds on one idle core, rounded up."""
        minutes: float = self.told["minutes"]
        return minutes

    @property
    def question(self) -> Bilingual:
        """The question that the lesson answers."""
        return words(self.name)["question"]


def lessons() -> list[Lesson]:
    """Return all lessons in the order of the course."""
    return [Lesson(*entry) for entry in data_file(FOLDER.with_name("lessons.json")).items()]


def lesson(name: str) -> Lesson:
    """Return the lesson with a name.

    >>> str(lesson("mask").question)
    'What happens without the causal mask?'
    """
    known = {each.name: each for each in lessons()}
    if name not in known:
        raise UsageError("unknown lesson {name!r}{nearest}", name=name, nearest=nearest(name, list(known)))
    return known[name]


def words(lesson: str) -> dict[str, Bilingual]:
    """Return the texts of a lesson by key: its file in ``words/``, and the texts shared by all lessons."""
    entries = {**data_file(FOLDER / "common.json"), **data_file(FOLDER / f"{lesson}.json")}
    return {key: Bilingual(entry["en"], entry["bn"]) for key, entry in entries.items()}
