"""The progress that long calls show: on a terminal and in a notebook, and nowhere else."""

import inspect
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.prepared import prepared_by_commands

import kotha
from kotha.api import progress


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    made = Terminal()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=made, modules=sys.modules))
    monkeypatch.setattr(progress, "_DELAY_SECONDS", 0)
    monkeypatch.setenv("COLUMNS", "200")
    return made


def listeners() -> Iterator[tuple[str, Any]]:
    """Yield the public functions and methods with a listener."""
    for name in kotha.__all__:
        value = getattr(kotha, name)
        for part, each in [(name, value), *(inspect.getmembers(value) if inspect.isclass(value) else ())]:
            if (
                inspect.isfunction(each)
                and part[0] != "_"
                and set(inspect.signature(each).parameters) & {"on_progress", "on_event"}
            ):
                yield f"{name}.{part}", each


@pytest.mark.parametrize(("name", "function"), [*listeners()])
def test_every_function_with_a_listener_shows_its_progress(name: str, function: Any) -> None:
    assert function.__code__ is progress.displayed(lambda on_progress: None).__code__, f"@displayed is missing: {name}"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared_by_commands(tmp_path_factory.mktemp("progress"), 600)


def train(data: Path, out: Path, **listeners: Any) -> None:
    kotha.train(data, preset="pocket", steps=3, batch_size=2, out=out / "run", **listeners)


def test_a_terminal_shows_the_steps_and_evaluations(terminal: Terminal, data: Path, tmp_path: Path) -> None:
    train(data, tmp_path)
    shown = terminal.getvalue()
    assert "float32 on cpu" in shown and "3/3  loss" in shown and "step      3  validation" in shown


def test_a_tokenizer_shows_its_stages(terminal: Terminal, tmp_path: Path) -> None:
    kotha.write_stories(tmp_path / "a.txt", 30)
    kotha.train_tokenizer(tmp_path / "a.txt", vocab_size=600)
    assert "reading" in terminal.getvalue() and "learning" in terminal.getvalue()


@pytest.mark.parametrize("how", ["no terminal", "quiet", "listener", "command"])
def test_otherwise_nothing_is_shown(
    terminal: Terminal, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    events: list[Any] = []
    if how == "no terminal":
        monkeypatch.setattr(terminal, "isatty", lambda: False)
    monkeypatch.setattr(progress._State, "quiet", False)
    if how == "quiet":
        kotha.quiet()
    if how == "command":
        with progress.silenced():
            train(data, tmp_path)
        assert not progress._State.quiet
    else:
        train(data, tmp_path, **({"on_event": events.append} if how == "listener" else {}))
    assert terminal.getvalue() == "" and bool(events) == (how == "listener")


def test_a_notebook_keeps_the_evaluations(
    monkeypatch: pytest.MonkeyPatch, terminal: Terminal, data: Path, tmp_path: Path
) -> None:
    shown: list[str] = []
    handle = SimpleNamespace(update=lambda page: shown.append(page.data))
    ipython = pytest.importorskip("IPython", reason="a notebook has IPython")
    monkeypatch.setattr(ipython, "get_ipython", lambda: SimpleNamespace(kernel=True))
    monkeypatch.setattr("IPython.display.display", lambda page, display_id: shown.append(page.data) or handle)
    monkeypatch.setattr(progress, "_REDRAW_SECONDS", 0)
    train(data, tmp_path)
    assert any("<progress" in each and 'max="3"' in each for each in shown)
    assert "validation" in shown[-1] and "<progress" not in shown[-1]
    assert terminal.getvalue() == ""


def test_the_bar_disappears_after_an_error(terminal: Terminal) -> None:
    @progress.displayed
    def work(on_progress: Any = None) -> None:
        on_progress("counting", 0, 0)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        work()
    assert "counting" in terminal.getvalue() and not progress._State.quiet
