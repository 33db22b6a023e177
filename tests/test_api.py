"""The face: its names, their texts, and an example of each that runs."""

import doctest
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kotha

NAMES = [
    "KothaError",
    "LanguageModel",
    "Run",
    "Tokenizer",
    "compare",
    "load",
    "prepare",
    "train",
    "train_tokenizer",
    "write_stories",
]


def public() -> Iterator[tuple[str, Any]]:
    """Every public name, and every public part of the classes that the face itself brings."""
    for name in NAMES:
        found = getattr(kotha, name)
        yield name, found
        if inspect.isclass(found) and found.__module__.startswith("kotha.api"):
            yield from ((f"{name}.{part}", value) for part, value in vars(found).items() if not part.startswith("_"))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A folder with what the examples name, made by the calls that they show; and the names that they share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("world"))
        kotha.write_stories("stories.jsonl", documents=60)
        tokenizer = kotha.train_tokenizer("stories.jsonl", vocab_size=600, out="tokenizer")
        kotha.prepare(["stories.jsonl"], tokenizer, "data")
        run = kotha.train("data", preset="pocket", steps=8, out="run", batch_size=2, context_length=32)
        yield {"kotha": kotha, "run": run, "lm": run.model}


def test_the_names_are_these() -> None:
    assert sorted(kotha.__all__) == NAMES
    assert sorted(dir(kotha)) == sorted([*NAMES, "__version__"])
    with pytest.raises(AttributeError, match="kotha has no 'lode'; it has KothaError, LanguageModel"):
        kotha.lode  # noqa: B018


@pytest.mark.parametrize("name", [name for name, _ in public()])
def test_every_public_name_has_an_example_that_runs(world: dict[str, Any], name: str) -> None:
    value = dict(public())[name]
    text = inspect.getdoc(value.func if hasattr(value, "func") else value)
    assert text, f"{name} says nothing of itself"
    found = doctest.DocTestParser().get_doctest(text, dict(world), name, None, None)
    assert found.examples, f"{name} has no example"
    assert not any(doctest.SKIP in example.options for example in found.examples), f"{name} skips an example"
    said: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(found, out=said.append)
    assert not result.failed, "".join(said)
    assert result.attempted == len(found.examples)


@pytest.mark.parametrize("first", ["kotha.train.loop", "kotha.api.run", "kotha.errors"])
def test_train_is_the_function_whatever_was_imported_before(first: str) -> None:
    code = (
        f"import kotha, inspect, {first}; from kotha.train.config import TrainConfig; "
        "import kotha.train.recipes as recipes; assert recipes.recipe; "
        "assert 'minutes' in inspect.signature(kotha.train).parameters; "
        "assert 'Train a model on a data folder' in kotha.train.__doc__; "
        "assert kotha.train.config.TrainConfig is TrainConfig"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_training_answers_after_its_room_was_imported(world: dict[str, Any]) -> None:
    import kotha.train.loop

    again = kotha.train("data", preset="mini", steps=1, out="again", batch_size=2)
    assert again.summary["steps"] == 1
    assert Path("again/report.html").is_file()
