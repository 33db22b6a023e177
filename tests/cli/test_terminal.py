"""Progress of long tasks without a terminal."""

import pytest

from kotha.cli import terminal
from kotha.cli.language import use_language
from kotha.i18n.message import Message


class Clock:
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(terminal, "time", made)
    return made


def test_a_log_has_a_progress_line_per_minute(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.progress() as advance:
        for done in range(7):
            advance("reading", done, 7)
            clock.now += 25
        advance("reading", 7, 7)
    assert capsys.readouterr().err.splitlines() == ["kotha: reading …", "kotha: reading … 43%", "kotha: reading … 86%"]


def test_work_of_unknown_length_has_no_percentage(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.progress() as advance:
        for done in range(5):
            advance("reading", done, 0)
            clock.now += 100
    assert capsys.readouterr().err.splitlines() == ["kotha: reading …"]


def test_progress_in_bangla(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with use_language(["prepare", "--language", "bn"]), terminal.progress() as advance:
        for done in range(3):
            advance(Message("reading"), done, 4)
            clock.now += 60
    assert capsys.readouterr().err.splitlines() == [
        "kotha: পড়া হচ্ছে …",
        "kotha: পড়া হচ্ছে … ২৫%",
        "kotha: পড়া হচ্ছে … ৫০%",
    ]
