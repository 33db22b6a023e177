"""The lessons by name: what each asks, how long it takes, what it measures and says. Nothing here imports torch."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kotha.errors import UsageError, nearest
from kotha.i18n.message import Bilingual

if TYPE_CHECKING:
    from kotha.course.lessons.measured import MeasuredLesson
    from kotha.course.lessons.result import LessonResult

FOLDER = Path(__file__).parent / "words"


@dataclass(frozen=True)
class Lesson:
    """A question, and where the answer is measured."""

    name: str

    @property
    def told(self) -> dict[str, Any]:
        """Its entry in ``lessons.json``; minutes are with three seeds, on one idle core, as measured, rounded up."""
        found: dict[str, Any] = _read(FOLDER.with_name("lessons.json"))[self.name]
        return found

    @property
    def minutes(self) -> float:
        """How long it takes."""
        minutes: float = self.told["minutes"]
        return minutes

    @property
    def question(self) -> Bilingual:
        """What it asks."""
        return words(self.name)["question"]

    def prepare(self, seeds: Sequence[int] = (0, 1, 2), **sizes: Any) -> "MeasuredLesson":
        """What trains and measures, with the lesson's own sizes where no others are given."""
        module = import_module(f"kotha.course.lessons.{self.told['in']}")
        made: MeasuredLesson = getattr(module, f"{self.name.capitalize()}Lesson")(
            self.name, self.told, words(self.name), seeds, sizes
        )
        return made

    def teach(
        self, seeds: Sequence[int] = (0, 1, 2), tell: Callable[[int, int], None] | None = None, **sizes: Any
    ) -> "LessonResult":
        """Train, measure, and say what was seen, and where it was; ``tell`` hears how far it is."""
        return self.prepare(seeds, **sizes).run(tell or (lambda done, total: None))


def lessons() -> list[Lesson]:
    """All of them, in the order of the course."""
    return [Lesson(name) for name in _read(FOLDER.with_name("lessons.json"))]


def lesson(name: str) -> Lesson:
    """The lesson of a name.

    >>> str(lesson("mask").question)
    'What happens without the causal mask?'
    """
    known = [each.name for each in lessons()]
    if name not in known:
        raise UsageError("there is no lesson {name!r}{nearest}", name=name, nearest=nearest(name, known))
    return Lesson(name)


def words(lesson: str) -> dict[str, Bilingual]:
    """What a lesson says, by keys, in both languages: its file in ``words/``, and one of words that all share."""
    read = {**_read(FOLDER / "common.json"), **_read(FOLDER / f"{lesson}.json")}
    return {key: Bilingual(entry["en"], entry["bn"]) for key, entry in read.items()}


@cache
def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
