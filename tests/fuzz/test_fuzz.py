"""Fuzzing with a few thousand fixed inputs (``make fuzz`` uses a million); the harness detects known defects."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fuzz import sums
from tests.fuzz.layers import opened
from tests.fuzz.lines import Watch
from tests.fuzz.mutation import damaged, mutated
from tests.fuzz.targets import ARCHIVE, TARGETS, seeds, write
from tests.fuzz.trial import Search

import kotha.errors
from kotha.errors import KothaError, nearest

linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is bounded and measured as Linux does it")


@linux
@pytest.mark.parametrize("inputs", [2_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_inputs_are_read_or_refused_in_words(inputs: int, tmp_path: Path) -> None:
    """This runs in a separate process, because children are forked and the test process may have threads."""
    words = [sys.executable, "-m", "tests.fuzz", "--inputs", str(inputs), "--out", str(tmp_path)]
    words += ["--wrong", str(tmp_path)]
    ran = subprocess.run(
        words, cwd=Path(__file__).parents[2], env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    figures = json.loads((tmp_path / "fuzz.json").read_text(encoding="utf-8"))["figures"]
    assert figures["inputs"] >= 0.95 * inputs and figures["wrong"] == 0
    assert {row["target"] for row in figures["targets"]} == set(TARGETS)
    for row in figures["targets"]:
        assert row["inputs"] == row["read"] + row["refused"], row
        assert row["read"] and row["kept"], f"{row['target']} reads nothing, or nothing that it is given is new to it"


# -- what is found ----------------------------------------------------------------------------------------------------


# The body of a loader, and the result of a search with two inputs: numbers read and rejected, and findings.
_TOLD = {
    "return None": "2 0 {}",
    "raise KothaError('no')": "0 2 {}",
    "raise KothaError(' ')": "0 0 {'an error without a word': 2}",
    "return {}[folder]": "0 0 {'KeyError at outside the house': 2}",
    "time.sleep(60)": "0 0 {'waits over 5 seconds': 2}",
    "while True: pass": "0 0 {'over 0.2 seconds': 2}",
    "os.kill(os.getpid(), signal.SIGSEGV)": "0 0 {'it died with -11': 2}",
    "bytearray(3 << 30)": "0 0 {'MemoryError at outside the house': 2}",
}


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, Path]]:
    """Return the results of the searches and the folders of findings, from a separate process that forks children."""
    folders = [tmp_path_factory.mktemp("kept") for _ in _TOLD]
    program = f"""
import os, signal, sys, time
from pathlib import Path
from kotha.errors import KothaError
from tests.fuzz import targets, trial

targets.seeds = trial.seeds = lambda name: {{"one": {{"it": b"abc"}}}}
trial.SECONDS, trial.WAITING = 0.2, 5.0  # far apart: of a busy machine one may have little for long
for what, kept in zip({list(_TOLD)!r}, {[str(folder) for folder in folders]!r}, strict=True):
    exec(f"def load(folder):\\n    {{what}}")
    found = trial.Search(targets.Target("made", lambda load=load: load, 1), 0, Path(kept)).run(2)
    print(found.read, found.refused, found.wrong, flush=True)
"""
    words = [sys.executable, "-c", program]
    ran = subprocess.run(words, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    return list(zip(ran.stdout.splitlines(), folders, strict=True))


@linux
@pytest.mark.parametrize("turn", range(len(_TOLD)), ids=list(_TOLD))
def test_what_a_loader_does_is_told(turn: int, searched: list[tuple[str, Path]]) -> None:
    result, kept = searched[turn]
    assert result == list(_TOLD.values())[turn]
    assert any(kept.rglob("it")) == ("{}" not in result), "what went wrong is kept, and nothing else"


def test_lines_are_new_once() -> None:
    house = str(Path(kotha.errors.__file__).parent)
    with Watch(house, ()) as first:
        nearest("a", ["b"])
    assert {Path(file).name for file, _ in first.new} == {"errors.py", "message.py"} and len(first.new) > 2
    with Watch(house, first.new) as again:
        nearest("a", ["b"])
    assert not again.new


# -- inputs -----------------------------------------------------------------------------------------------------------


def test_the_seeds_are_sound_and_small() -> None:
    assert ARCHIVE.stat().st_size < 300_000
    for target in TARGETS:
        assert seeds(target), f"{target} has nothing to begin with"


def test_an_input_is_known_by_its_number(tmp_path: Path) -> None:
    one, two = (Search(TARGETS["corpus"], seed=5, kept_in=tmp_path) for _ in range(2))
    inputs = [one.make(number) for number in range(200)]
    assert inputs == [two.make(number) for number in range(200)]
    assert inputs[: len(one.pool)] == one.pool, "the first are the seeds as they are"
    assert len({tuple(sorted(each.items())) for each in inputs}) > 150
    assert Search(TARGETS["corpus"], seed=6, kept_in=tmp_path).make(199) != inputs[199]


@pytest.mark.parametrize(("target", "seed"), [("weights", "one"), ("weights", "pickle"), ("pictures", "palette"),
                                              ("pictures", "npz"), ("corpus", "gz"), ("corpus", "zst"),
                                              ("requests", "post-v1-completions")])  # fmt: skip
def test_a_file_is_opened_and_closed_again(target: str, seed: str) -> None:
    [(name, data)] = seeds(target)[seed].items()
    layers = opened(name, data)
    assert layers is not None and layers[0], f"{name} has no parts"
    parts, close = layers
    again = opened(name, close(parts))
    assert again is not None and again[0] == parts


def test_damage_to_a_tree_leaves_a_tree() -> None:
    rng = random.Random(0)
    made = [damaged(rng, "it.json", b'{"a": [1, 2, {"b": "c"}], "d": null}') for _ in range(300)]
    trees = 0
    for each in made:
        try:
            json.loads(each)
            trees += 1
        except ValueError:
            pass
    assert trees > 150 and len(set(made)) > 150


def test_sums_agree_after_damage(tmp_path: Path) -> None:
    from kotha.text.shards import Dataset

    parcel = dict(seeds("data")["plain"])
    shard = next(name for name in parcel if name.startswith("train-"))
    parcel[shard] = bytes(2) + parcel[shard][2:]
    with pytest.raises(KothaError, match="sha256"):
        Dataset(write(tmp_path / "broken", parcel))
    assert Dataset(write(tmp_path / "mended", sums.data(parcel)))["train"][0][0] == 0


def test_damage_is_done_to_every_kind_of_input() -> None:
    for target in TARGETS:
        pool, rng = list(seeds(target).values()), random.Random(target)
        changed = sum(mutated(rng, parcel, pool) != parcel for parcel in pool for _ in range(10))
        assert changed > 8 * len(pool), f"{target}: {changed} of {10 * len(pool)}"


def test_an_archive_that_seems_locked_is_damaged_as_it_is() -> None:
    [(name, data)] = seeds("weights")["pickle"].items()
    place = data.index(b"PK\x01\x02") + 8  # the first member's flags in the central directory
    assert opened(name, data[:place] + b"\x01" + data[place + 1 :]) is None
