"""What lessons say, in both languages: one JSON file a lesson in ``words/``, and one of words that they share."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from kotha.course.lessons.result import Condition, Drawing, Figure, LessonResult, Line, Sample
from kotha.i18n.message import Bilingual

FOLDER = Path(__file__).parent / "words"


class Wordbook:
    """The words of one lesson, by their keys; what it has not is looked up among the shared ones."""

    def __init__(self, lesson: str) -> None:
        self.lesson = lesson
        self._words = {**_read("common"), **_read(lesson)}

    def __getitem__(self, key: str) -> Bilingual:
        return self._words[key]

    def say(self, key: str, **figures: Any) -> Bilingual:
        """A sentence with its figures.

        >>> str(Wordbook("mask").say("writes", blind=1.5, honest=1.25))
        'Given the past alone, its loss is 1.50, with the mask 1.25: it can still write.'
        """
        return self._words[key].fill(**figures)

    def figure(self, key: str, digits: int = 2, better: Any = "low", percent: bool = False) -> Figure:
        """What is measured, with its title."""
        return Figure(key, self[key], digits, better, percent)

    def conditions(
        self,
        found: Mapping[str, Sequence[Any]],
        measures: Mapping[str, Callable[[Any], float]],
        titles: Mapping[str, Bilingual] | None = None,
    ) -> list[Condition]:
        """A row for each condition: every measure of every run."""
        return [
            Condition(
                key,
                self[key] if titles is None else titles[key],
                {name: [measure(run) for run in runs] for name, measure in measures.items()},
            )
            for key, runs in found.items()
        ]

    def result(
        self,
        figures: Sequence[Figure],
        conditions: Sequence[Condition],
        reading: Sequence[Bilingual],
        lines: Sequence[Line],
        axes: tuple[str, str, str] = ("on_the_way", "steps", "nats"),
        *,
        from_zero: bool = False,
        samples: Sequence[Sample] = (),
        about: Mapping[str, Any] | None = None,
    ) -> LessonResult:
        """All that came of the lesson; ``axes`` are the picture's title and what stands along its sides."""
        title, x, y = (self[key] for key in axes)
        drawing = Drawing(title, x, y, lines, from_zero=from_zero)
        return LessonResult(self.lesson, figures, conditions, reading, drawing, samples, about or {})


@cache
def _read(name: str) -> dict[str, Bilingual]:
    found = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return {key: Bilingual(entry["en"], entry["bn"]) for key, entry in found.items()}
