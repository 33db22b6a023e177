"""The lessons by name: what each asks, and how long it takes. Nothing here imports torch."""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from kotha.course.lessons.wordbook import Wordbook
from kotha.errors import UsageError, nearest
from kotha.i18n.message import Bilingual

if TYPE_CHECKING:
    from kotha.course.lessons.occasion import Occasion
    from kotha.course.lessons.result import LessonResult

# Minutes with three seeds, on one core that has nothing else to do; as measured, rounded up.
_MINUTES = {
    "positions": 4,
    "joined": 3,
    "encoder": 4,
    "mask": 3,
    "parameters": 0.1,
    "heads": 1,
    "residuals": 4,
    "dropout": 4,
    "width": 3,
    "coreference": 1,
    "lstm": 3,
    "vision": 3,
}


@dataclass(frozen=True)
class Lesson:
    """A question, and where the answer is measured: the module of its name."""

    name: str
    minutes: float

    @property
    def question(self) -> Bilingual:
        """What it asks."""
        return Wordbook(self.name)["question"]

    def teach(self, occasion: "Occasion") -> "LessonResult":
        """Train, measure, and say what was seen, and where it was."""
        from kotha.course.lessons.occasion import told_of

        module = import_module(f"kotha.course.lessons.{self.name}")
        return told_of(module.teach, occasion.prefer(**getattr(module, "SIZES", {})))


def lessons() -> list[Lesson]:
    """All of them, in the order of the course."""
    return [Lesson(name, minutes) for name, minutes in _MINUTES.items()]


def lesson(name: str) -> Lesson:
    """The lesson of a name.

    >>> str(lesson("mask").question)
    'What happens without the causal mask?'
    """
    if name not in _MINUTES:
        raise UsageError("there is no lesson {name!r}{nearest}", name=name, nearest=nearest(name, _MINUTES))
    return Lesson(name, _MINUTES[name])
