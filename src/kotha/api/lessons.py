"""The course's lessons, which train and measure small models. Listing the lessons does not import torch."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kotha.arguments import checked
from kotha.course.lessons.catalogue import Lesson as Lesson
from kotha.course.lessons.catalogue import lesson as lesson
from kotha.course.lessons.catalogue import lessons as lessons
from kotha.course.lessons.catalogue import words
from kotha.i18n.message import OnProgress
from kotha.i18n.numbers import Language
from kotha.storage.atomic import atomic_write
from kotha.storage.json_files import as_json

if TYPE_CHECKING:
    from kotha.course.lessons.result import LessonResult

# The common texts of the lessons, in both languages.
WORDS = words("common")


@checked()
def teach(
    name: str, *, seeds: int = 3, steps: int | None = None, on_progress: OnProgress | None = None
) -> "LessonResult":
    """Train and measure the models in a lesson, with ``seeds`` models of each kind."""

    def report_progress(done: int, total: int) -> None:
        if on_progress is not None:
            on_progress(WORDS["working"], done, total)

    chosen = lesson(name)
    from kotha.course.lessons.runner import MeasuredLesson

    return MeasuredLesson(chosen, range(seeds), **({} if steps is None else {"steps": steps})).run(report_progress)


def save_lesson(found: "LessonResult", record: dict[str, Any], out: Path, language: Language = "en") -> None:
    """Write a lesson's result to a folder as NAME.json and NAME.svg."""
    name = found.plain["lesson"]
    out.mkdir(parents=True, exist_ok=True)
    atomic_write(out / f"{name}.json", as_json(record, 1) + "\n", ".json")
    atomic_write(out / f"{name}.svg", found.svg(language), ".svg")
