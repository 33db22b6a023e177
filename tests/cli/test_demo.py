"""The demo and its page: all links have targets, and the suggested commands run."""

import contextlib
import io
import json
import re
import shlex
from pathlib import Path

import pytest
from tests.report.shown import Shown, text

import kotha
from kotha.api.demo import MARK, Demonstration
from kotha.api.demo_page import PAGES
from kotha.cli.main import main


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a small demo and its output; the name needs quoting, and the folder contains an earlier demo."""
    folder = tmp_path_factory.mktemp("demos") / "a demo"
    kotha.write_stories(folder / "stories.jsonl", documents=20)
    tokenizer = kotha.train_tokenizer(folder / "stories.jsonl", vocab_size=500)
    kotha.prepare(folder / "stories.jsonl", tokenizer, folder / "data")
    (folder / "run").mkdir()
    (folder / "run" / "config.json").write_text("{}")
    (folder / MARK).touch()
    arguments = ["demo", "--out", str(folder), "--documents", "100", "--vocab-size", "1000", "--minutes", "0.02"]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main(arguments) == 0
    return folder, printed.getvalue()


@pytest.fixture(scope="module")
def made(demo: tuple[Path, str]) -> Path:
    return demo[0]


@pytest.fixture(scope="module")
def page(made: Path) -> Shown:
    return Shown((made / "report.html").read_text(encoding="utf-8"))


def test_the_page_begins_with_the_results(page: Shown) -> None:
    assert page.headings() == [
        *("How it learned", "The same words, before and after", "Look inside it"),
        *(
            "Continuations of texts that it was not trained on",
            "What to try next",
            "How it splits text: tokens are whole grapheme clusters",
        ),
    ]
    (chart,) = page.blocks("curves")
    names = [text(label).partition(" = ")[0] for _, label in chart["levels"]]
    assert names == ["uniform", "unigram", "5-gram", "floor"], "the baselines are in the chart"
    labels = [text(each["label"]) for each in page.blocks("columns")[0]["columns"][1][1:]]
    assert labels[0] == "step 0: random weights"
    assert re.fullmatch(r"step (\d+) of \1", labels[-1]), "the last sample is that of the last step"
    assert page.data["blocks"][-1]["kind"] == "folded", "the training data is folded, at the end"


def test_every_link_has_a_target(made: Path, page: Shown) -> None:
    links = [address for address, *_ in page.blocks("links")[0]["links"]]
    assert links == [address for address, *_ in PAGES]
    assert [link for link in links if not (made / link).is_file()] == []


def test_the_suggested_commands_run(made: Path, page: Shown, capsys) -> None:
    *commands, program = (block["text"] for block in page.blocks("code"))
    assert len(commands) == 6
    for command in commands:  # as printed, but with the shortest possible training
        words = shlex.split(command.replace("--minutes 0.1", "--steps 1"))  # five times the 0.02 of this demo
        assert main(words[1:]) == 0, f"{command}\n{capsys.readouterr().err}"
    exec(compile(program, "report.html", "exec"), {})
    assert capsys.readouterr().out.count("নদীর ধারে") >= 1


def test_it_prints_its_steps_and_suggestions(demo: tuple[Path, str]) -> None:
    printed = demo[1]
    assert re.findall(r"^\d+\. (.*?)  ", printed, re.MULTILINE)[:2] == ["The bundled model", "Stories"]
    assert "The entropy of the grammar" in printed
    proposed = printed.split("Three things to try next:")[1].strip().splitlines()
    assert [shlex.split(command)[1] for command in proposed] == ["generate", "train", "inside"]


def test_it_replaces_an_earlier_demo(made: Path) -> None:
    assert kotha.load(made / "run").config.vocab_size == 1000
    assert json.loads((made / "data" / "dataset.json").read_text(encoding="utf-8"))["vocab_size"] == 1000


def test_other_folders_are_not_overwritten(tmp_path: Path, capsys) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("years of work")
    assert main(["demo", "--out", str(tmp_path), "--documents", "100"]) == 1
    assert "contains run and is not a demo folder; choose a new" in capsys.readouterr().err
    assert [path.name for path in tmp_path.rglob("*")] == ["run", "thesis.tex"]


def test_a_stopped_demo_can_be_repeated(tmp_path: Path) -> None:
    for _ in range(2):
        steps = Demonstration(tmp_path / "demo", documents=100, vocab_size=1000, minutes=1, seed=0).steps()
        next(step for step in steps if str(step.name) == "Stories").work()
    assert len((tmp_path / "demo" / "stories.jsonl").read_text(encoding="utf-8").splitlines()) == 100


def test_the_page_and_the_command_measure_the_same(made: Path, page: Shown, capsys) -> None:
    assert main(["evaluate", str(made / "run"), str(made / "held-out.jsonl"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    unigram = found["baselines"]["unigram"]
    tiles, lead = [value for value, _ in page.blocks("headline")[0]["figures"]], text(page.data["lead"])
    assert tiles[:2] == [f"{found['bits_per_byte']:.3f}", f"{unigram['bits_per_byte']:.3f}"]
    worse = found["bits_per_byte"] >= unigram["bits_per_byte"]
    assert ("token frequencies alone" in lead) == worse, (
        "a model that the unigram baseline beats is not reported as trained"
    )
    assert ("and learned to write its own" in lead) != worse
