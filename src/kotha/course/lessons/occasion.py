"""What a lesson is given: sizes, seeds, and someone to tell how far it is; and what is written down of where it was."""

import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch

from kotha import __version__
from kotha.course.lessons.classroom import Classroom, Sizes, classroom
from kotha.course.lessons.result import LessonResult
from kotha.errors import UsageError
from kotha.i18n.message import Option
from kotha.training.device import describe_machine

_MOST_SEEDS = 100


@dataclass(frozen=True)
class Occasion:
    """What a lesson is given: sizes, seeds, and someone to tell how far it is."""

    sizes: Sizes = field(default_factory=Sizes)
    seeds: Sequence[int] = (0, 1, 2)
    tell: Callable[[int, int], None] = lambda done, total: None

    def __post_init__(self) -> None:
        if not 1 <= len(self.seeds) <= _MOST_SEEDS:
            given = Option("seeds", len(self.seeds))
            raise UsageError("{seeds}: give 1 to {most}; 3 show what chance does", seeds=given, most=_MOST_SEEDS)

    @property
    def room(self) -> Classroom:
        """The texts."""
        return classroom(self.sizes)

    def change(self, **changes: Any) -> "Occasion":
        """The same with other sizes; a lesson asks for what it needs."""
        return replace(self, sizes=self.sizes.change(**changes))

    def prefer(self, **sizes: Any) -> "Occasion":
        """The same with a lesson's own sizes, where nobody asked for others."""
        usual, asked = asdict(Sizes()), asdict(self.sizes)
        return self.change(**{name: value for name, value in sizes.items() if asked[name] == usual[name]})

    def counter(self, total: int) -> Callable[[], None]:
        """A function to call after each of so many steps, which tells how far the lesson is."""
        done = 0

        def step() -> None:
            nonlocal done
            done += 1
            self.tell(done, total)

        return step


def told_of(teach: Callable[[Occasion], LessonResult], occasion: Occasion) -> LessonResult:
    """What came of a lesson, with the machine, the versions, the sizes that were asked for, and its time."""
    began, worked = time.perf_counter(), time.process_time()
    found = teach(occasion)
    about = {
        "machine": describe_machine(torch.device("cpu")),
        "versions": {"kotha": __version__, "python": platform.python_version(), "torch": torch.__version__},
        "sizes": asdict(occasion.sizes),
        "seeds": list(occasion.seeds),
        "seconds": round(time.perf_counter() - began, 1),
        "processor_seconds": round(time.process_time() - worked, 1),  # of all cores; says more on a busy machine
    }
    return replace(found, about={**about, **found.about})
