"""docs/reference equals the program's current help, for every command, public name, format and error."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import reference
from scripts.book.examples import examples

import kotha
from kotha.cli.main import COMMANDS


def page(name: str) -> str:
    return (reference.PAGES / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    """The pages, generated in a separate process, because the terminal width may differ in this process."""
    code = "import json; from scripts import reference; print(json.dumps(reference.pages()))"
    root = Path(__file__).parent.parent
    result = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize("name", ["commands.md", "python.md", "formats.md", "errors.md", "errors.bn.md"])
def test_a_page_is_fresh(name: str, made: dict[str, str]) -> None:
    assert page(name) == made[name], "run: make reference"


def test_a_page_that_is_not_fresh_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reference, "PAGES", tmp_path)
    assert reference.main(["--check"]) == 1
    assert "commands.md" in capsys.readouterr().err
    assert reference.main([]) == reference.main(["--check"]) == 0
    (tmp_path / "errors.md").write_text("other", encoding="utf-8")
    assert reference.main(["--check"]) == 1


def test_every_command_is_there_and_those_of_the_groups() -> None:
    headings = re.findall(r"^##+ (kotha .+)$", page("commands.md"), re.MULTILINE)
    assert {heading.split()[1] for heading in headings} == set(COMMANDS)
    assert "kotha tokenizer train" in headings
    assert "kotha inside attention" in headings
    assert len(headings) == len(set(headings))


def test_every_public_name_is_there() -> None:
    assert re.findall(r"^## kotha\.(\w+)$", page("python.md"), re.MULTILINE) == kotha.__all__
    assert "### LanguageModel.generate" in page("python.md")
    assert "### Run.summary" in page("python.md")


def test_every_error_is_there_in_both_languages() -> None:
    names = re.findall(r"^## (\w+)$", page("errors.md"), re.MULTILINE)
    assert names == re.findall(r"^## (\w+)$", page("errors.bn.md"), re.MULTILINE)
    assert {"KothaError", "UsageError", "RefusedError"} <= set(names)
    assert "“nowhere নামে কিছু নেই।" in page("errors.bn.md"), "an example's message as the catalogue has it"


def test_every_file_of_a_run_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kotha.write_stories("stories.jsonl", documents=20)
    kotha.prepare("stories.jsonl", kotha.train_tokenizer("stories.jsonl", vocab_size=700), "data", validation=0.1)
    assert kotha.train("data", preset="mini", steps=2, out="run", batch_size=2).report.is_file()
    result = page("formats.md")
    made = {path.name for folder in ("data", "run") for path in (tmp_path / folder).rglob("*") if path.is_file()}
    known = {name.replace("validation", "train") for name in made}
    assert len(known) > 10
    assert [name for name in sorted(known) if name not in result] == []


def test_every_command_of_the_tour_shows_its_output_in_a_few_lines() -> None:
    shown = examples((reference.PAGES / "tour.md").read_text(encoding="utf-8"))
    assert [each.command for each in shown if each.shown is None] == []
    assert [each.command for each in shown if len((each.shown or "").splitlines()) > 12] == []
