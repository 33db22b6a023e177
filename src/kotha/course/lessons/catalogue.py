"""The lessons by name: what each asks, how long it takes, what it measures and says. Nothing here imports torch."""

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
    """A question, and how long the answer takes."""

    name: str
    told: Mapping[str, Any]  # its entry in ``lessons.json``

    @property
    def minutes(self) -> float:
        """How long it takes, with three seeds, on one idle core, as measured, rounded up."""
        minutes: float = self.told["minutes"]
        return minutes

    @property
    def question(self) -> Bilingual:
        """What it asks."""
        return words(self.name)["question"]


def lessons() -> list[Lesson]:
    """All of them, in the order of the course."""
    return [Lesson(*entry) for entry in data_file(FOLDER.with_name("lessons.json")).items()]


def lesson(name: str) -> Lesson:
    """The lesson of a name.

    >>> str(lesson("mask").question)
    'What happens without the causal mask?'
    """
    known = {each.name: each for each in lessons()}
    if name not in known:
        raise UsageError("unknown lesson {name!r}{nearest}", name=name, nearest=nearest(name, list(known)))
    return known[name]


def words(lesson: str) -> dict[str, Bilingual]:
    """What a lesson says, by keys, in both languages: its file in ``words/``, and one of words that all share."""
    read = {**data_file(FOLDER / "common.json"), **data_file(FOLDER / f"{lesson}.json")}
    return {key: Bilingual(entry["en"], entry["bn"]) for key, entry in read.items()}
