"""Thousands of generated documents, the same number for each plot, for tests of their content."""

from typing import NamedTuple

import pytest

from kotha.text.stories.plot import compile_plot, plots
from kotha.text.stories.scene import Chooser, Scene

PLOTS = plots()
ALL_PLOTS = sum(map(len, PLOTS.values()))


class Document(NamedTuple):
    """A generated document: its kind and plot, its text, and its scene."""

    kind: str
    plot: str
    text: str
    scene: Scene


@pytest.fixture(scope="module", params=[1_500, pytest.param(10_000, marks=pytest.mark.slow)])
def documents(request: pytest.FixtureRequest) -> list[Document]:
    return [
        Document(kind, plot.name, *compile_plot(plot)(Chooser(f"sense:{plot.name}:{index}")))
        for kind, some in PLOTS.items()
        for plot in some
        for index in range(request.param // ALL_PLOTS + 1)
    ]


class Replay(Chooser):
    """A chooser that replays the given choices modulo the number of options, and then always chooses 0."""

    def __init__(self, script: list[int]) -> None:
        super().__init__("replay")
        self.script = script
        self.asked: list[int] = []

    def below(self, n: int) -> int:
        super().below(n)
        answer = self.script[len(self.asked)] % n if len(self.asked) < len(self.script) else 0
        self.asked.append(n)
        return answer


def of(documents: list[Document], *plots: str) -> list[Document]:
    found = [document for document in documents if document.plot in plots]
    assert len(found) == len(plots) * len(documents) // ALL_PLOTS
    return found
