"""What the documents say is true: commands run, code runs, named files exist, figures are those that were measured."""

import io
import json
import re
import shlex
from pathlib import Path

import pytest

from kotha.cli.main import COMMANDS, main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_the_commands_of_the_readme_run_in_their_order(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO())  # nobody says anything to `kotha chat`
    lines = [line for block in blocks(README, "console") for line in block.splitlines() if line.startswith("kotha ")]
    assert {shlex.split(line)[1] for line in lines} == set(COMMANDS) - {"demo"}, "every command is shown (demo by make)"
    for line in lines:
        shorter = re.sub(r"--minutes \d+", "--steps 2", re.sub(r"--steps \d+", "--steps 2", line))
        code = main(shlex.split(shorter)[1:])
        assert code == 0, f"{line}\n{capsys.readouterr().err}"


def test_the_make_targets_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^make (\S+)$", "\n".join(blocks(README, "console")), re.MULTILINE)
    assert targets == ["demo", "test"]
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


def test_the_python_of_the_readme_runs() -> None:
    (code,) = blocks(README, "python")
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    assert len(names) > 1, "the example makes something"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_files_that_documents_name_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = re.findall(r"`((?:docs|benchmarks|tests|scripts|src)/[\w./-]+|[A-Z]+\.md|constraints\.txt)`", text)
    missing = [name for name in named if not (ROOT / name).exists()]
    assert not missing


def test_the_rooms_drawn_in_the_design_exist() -> None:
    drawing = blocks((ROOT / "docs" / "design.md").read_text(encoding="utf-8"), "")[0]
    names = re.findall(r"(?<!\w)([a-z_0-9]+(?:\.py|/))", drawing)
    package = ROOT / "src" / "kotha"
    known = {path.name + ("/" if path.is_dir() else "") for path in package.rglob("*")} | {"src/", "kotha/"}
    assert set(names) <= known
    rooms = [package / room for room in ("text", "model", "generate", "evaluate")]
    modules = {path.name for room in rooms for path in room.glob("*.py")}
    modules |= {path.name for room in ("train", "inside", "export") for path in (package / room).rglob("*.py")}
    modules -= {"__init__.py"}
    assert modules <= set(names), "every module of these rooms is on the map"


def test_the_table_of_the_readme_is_what_was_measured() -> None:
    results = json.loads((ROOT / "benchmarks" / "results" / "tokenizers_on_news.json").read_text(encoding="utf-8"))
    measured = {
        (f"{row['tokens_per_word']:.3f}", f"{row['split_aksharas']:.2%}".replace("%", " %"))
        for row in results["figures"]
    }
    rows = re.findall(r"\| (\d\.\d{3}) \| (\d+\.\d\d %) \|", README)
    assert len(rows) == 6
    assert set(rows) <= measured
