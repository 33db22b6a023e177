"""Files in which one value is replaced by a value of any type are rejected with a message or read correctly."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kotha.artifacts import model_folder as bundle
from kotha.artifacts.run_folder import RunFolder
from kotha.cli.main import main
from kotha.errors import KothaError
from kotha.generation.engine import Engine
from kotha.generation.request import Request
from kotha.text.shards import Dataset
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.checkpoint import MANIFEST, STATE, _sha256
from kotha.training.reporting.report import write_report
from kotha.training.start import resume_run

# Values of every JSON type, including numbers that cost memory or time if they are trusted.
VALUES: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([None, True, False, 0, -1, 1, 2, 7, 10**9, 2**31, 2**63, 10**30, 0.5, -0.0, 1e308, float("inf")]),
    st.sampled_from(["", "four", "৪", "../..", "\x00", "\ud800"]),
    st.sampled_from([[], [1], [[]], ["a"], {}, {"a": 1}, {"a": {"b": []}}, [None] * 3]),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    stories, tokenizer, data = (str(folder / name) for name in ("s.jsonl", "tok", "data"))
    assert main(["corpus", "stories", "--documents", "40", "--out", stories]) == 0
    assert main(["tokenizer", "train", stories, "--vocab-size", "600", "--out", tokenizer]) == 0
    assert main(["prepare", stories, "--tokenizer", tokenizer, "--out", data]) == 0
    small = ["--preset", "mini", "--recipe", "classic", "--set", "batch_size=2", "micro_batch_size=2", "--steps", "2"]
    assert main(["train", data, "--out", str(folder / "run"), *small]) == 0
    return folder


def damage(value: Any, draw: Callable[..., Any]) -> Any:
    """Return the tree with one of its values replaced, or one of its keys removed."""
    if isinstance(value, dict | list) and value and draw(st.integers(0, 4)):
        places = list(value) if isinstance(value, dict) else range(len(value))
        place = draw(st.sampled_from(places))
        copy = value.copy()
        if draw(st.integers(0, 9)) == 0:
            del copy[place]
        else:
            copy[place] = damage(value[place], draw)
        return copy
    return draw(VALUES)


def load_and_write(run: Path) -> None:
    opened = bundle.load(run)
    if opened.tokenizer is None:
        return
    Engine(opened.model, opened.tokenizer).generate([Request(prompt="নদী", tokens=3)])  # type: ignore[arg-type]


def use_tokenizer(run: Path) -> None:
    tokenizer = Tokenizer.load(run)
    tokenizer.decode(tokenizer.encode("নদীর ধারে 12"))


def go_on(run: Path) -> None:
    resume_run(Dataset(run.parent / "data"), RunFolder(run), {})


def look_back(run: Path) -> None:
    folder = RunFolder(run)
    folder.read(), folder.best(), folder.summary(), folder.metrics()
    write_report(run)


def diagnose(run: Path) -> None:
    assert main(["doctor", str(run)]) in (0, 1, 2)


def compare(run: Path) -> None:
    assert main(["compare", str(run)]) in (0, 1, 2)


def read_data(run: Path) -> None:
    data = Dataset(run.parent / "data")
    [len(document) for split in data.splits.values() for document in split]


CASES: dict[str, tuple[str, list[Callable[[Path], None]]]] = {
    "model": ("run/best/config.json", [load_and_write]),
    "tokenizer": ("run/best/tokenizer.json", [lambda run: use_tokenizer(run / "best")]),
    "dataset": ("data/dataset.json", [read_data]),
    "run": ("run/config.json", [look_back, diagnose, compare, go_on]),
    "summary": ("run/summary.json", [look_back, compare]),
    "best": ("run/best.json", [look_back, compare]),
    "metrics": ("run/metrics.jsonl", [look_back, diagnose, compare, go_on]),
    "checkpoint": ("run/checkpoints/step-00000002/state.json", [go_on]),
}


@pytest.mark.parametrize("case", CASES)
@settings(
    max_examples=8, derandomize=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(st.data())  # the same cases each time; the slow test searches for others
def test_a_damaged_file_is_refused_in_words(made: Path, tmp_path: Path, case: str, data: st.DataObject) -> None:
    damage_and_read(made, tmp_path, case, data)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(st.data())
def test_many_damaged_files_are_refused_in_words(made: Path, tmp_path: Path, case: str, data: st.DataObject) -> None:
    damage_and_read(made, tmp_path, case, data)


def damage_and_read(made: Path, tmp_path: Path, case: str, data: st.DataObject) -> None:
    name, readers = CASES[case]
    for part in ("run", "data"):
        shutil.copytree(made / part, tmp_path / part, dirs_exist_ok=True)
    file = tmp_path / name
    lines = (
        file.read_text(encoding="utf-8").splitlines() if file.suffix == ".jsonl" else [file.read_text(encoding="utf-8")]
    )
    chosen = data.draw(st.integers(0, len(lines) - 1))
    lines[chosen] = json.dumps(damage(json.loads(lines[chosen]), data.draw))
    file.write_text("\n".join(lines), encoding="utf-8")
    if file.name == STATE:  # as if the file had been written this way
        manifest = file.with_name(MANIFEST)
        manifest.write_text(json.dumps({**json.loads(manifest.read_text()), STATE: _sha256(file)}))
    torch.manual_seed(0)
    for read in readers:
        try:
            read(tmp_path / "run")
        except KothaError as error:
            assert str(error)
