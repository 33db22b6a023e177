"""The documentation is correct: commands and code run, and the files, terms and rooms that it names exist."""

import ast
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scripts.book.examples import difference, examples, run
from tests.prepared import write_pairs
from tests.shown import Pages

import kotha
from kotha.cli.main import COMMANDS, main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
TOUR = (ROOT / "docs" / "reference" / "tour.md").read_text(encoding="utf-8")
TECHNIQUES = (ROOT / "docs" / "reference" / "techniques.md").read_text(encoding="utf-8")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


# `make demo` runs the first command; the others run until they are stopped, as in tests/server/test_running.py.
NOT_SHOWN = {"demo", "open", "serve"}
# A command as printed, and its faster version: less data, and a model that does not slow down later commands.
SHORTER = {
    r"--documents \d+": "--documents 60",
    r"--vocab-size \d+": "--vocab-size 700",
    r"train data --minutes \d+": "train data --preset pocket --steps 2",
    r"--minutes \d+": "--steps 2",
    r"(--steps 2)": r"\1 --set batch_size=4 context_length=64 d_model=64 n_heads=2 d_ff=128",
    r"--trials \d+": "--trials 3",
}


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def commands(text: str) -> list[str]:
    return [each.command for each in examples(text) if each.command.startswith("kotha ")]


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty working folder, with a terminal of 100 columns and no input."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("KOTHA_LANGUAGE", raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    return tmp_path


@pytest.mark.extended
def test_the_commands_of_the_tour_run_in_their_order(terminal: Path) -> None:
    write_pairs(terminal / "pairs.tsv", 60)  # the reader's own files
    assert {shlex.split(line)[1] for line in commands(TOUR)} == set(COMMANDS) - NOT_SHOWN, "every command is shown"
    Pages(ROOT / "docs" / "reference" / "tour.md").check()


@pytest.mark.extended
def test_the_commands_of_the_readme_run_in_their_order(terminal: Path) -> None:
    (terminal / "texts").mkdir()
    kotha.write_stories(terminal / "texts" / "stories.jsonl", documents=60)
    Pages(ROOT / "README.md", SHORTER).check()


def test_the_quickstart_shows_what_is_printed(terminal: Path) -> None:
    first = next(each for each in examples(README) if each.command.startswith("kotha generate"))
    assert difference(first, run(first.command)[1]) is None


def test_the_make_targets_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"`make ([\w-]+)`", README))
    assert targets == {"demo", "test"}
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


def test_the_readme_fits_on_a_few_screens() -> None:
    assert len(README.splitlines()) <= 150


def test_the_python_of_the_readme_runs(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    kotha.write_stories("news.jsonl", documents=60)
    kotha.write_stories("held-out.txt", documents=3, seed=7)
    (code,) = blocks(README, "python")
    small = "preset='pocket', steps=2, batch_size=4, context_length=64, d_model=64, n_heads=2, d_ff=128"
    shorter = code.replace("minutes=10", small)
    shorter = shorter.replace("vocab_size=8192", "vocab_size=700")
    names: dict[str, Any] = {}
    exec(compile(shorter, "README.md", "exec"), names)
    assert names["run"].summary["steps"] == 2


def features() -> list[tuple[str, str, str]]:
    """The rows in the table of techniques: terms, module, command."""
    table = TECHNIQUES.split("| term |")[1].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return [(terms, module.strip("`"), seen) for terms, module, seen in rows]


@pytest.mark.parametrize(("terms", "module", "seen"), features(), ids=lambda cell: cell)
def test_what_an_engineer_searches_for_is_where_the_table_says(terms: str, module: str, seen: str, capsys) -> None:
    path = ROOT / ("" if module.startswith("benchmarks/") else "src/kotha") / module
    assert path.is_file(), f"the table of techniques names {module}, which is not there; has it moved?"
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    for term in terms.split(", "):
        words = [word for word in term.split() if word not in ("in", "of", "by", "or")]
        missing = [word for word in words if word.lower().rstrip("s") not in docstring.lower()]
        assert not missing, f"techniques.md has {term!r} in {module}, whose docstring lacks {missing}"
    for command in re.findall(r"`kotha ([^`]+)`", seen):
        names, flags = [word for word in command.split() if word[0] != "-"], re.findall(r"--[\w-]+", command)
        names = [name for name in names if f"{name}" not in command.partition("--")[2]]
        assert main([*names, "--help"]) == 0
        shown = capsys.readouterr().out
        assert [flag for flag in flags if flag not in shown] == [], f"kotha {command}: no such flag"


def test_the_searched_for_terms_are_all_in_the_table() -> None:
    wanted = """KV cache, mixed precision, gradient accumulation, MLM, continuous batching, cross-entropy, nucleus,
        top-p, RoPE, WSD, GQA, SwiGLU, RMSNorm, EMA, Muon, FSDP, DDP, BPE, SentencePiece, GGUF, ONNX, logit lens,
        induction heads, perplexity, BLEU, Kneser-Ney"""
    terms = " | ".join(terms for terms, _, _ in features())
    assert [term for term in re.split(r",\s+", wanted) if term not in terms] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_files_that_documents_name_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = re.findall(r"`((?:docs|benchmarks|tests|scripts|src)/[\w./-]+|[A-Z]+\.md|constraints\.txt)`", text)
    missing = [name for name in named if not (ROOT / name).exists()]
    short = re.findall(r"`((?:[\w-]+/)*[\w-]+\.(?:py|c))`", text)  # a module by its last names, or a benchmark
    missing += [name for name in short if not any(ROOT.glob(f"src/kotha/**/{name}")) and not (ROOT / name).exists()]
    assert not missing, f"{path.name} names what is not there (moved? renamed?): {missing}"


def drawn_paths(drawing: str) -> list[str]:
    """The paths in a directory tree; folders end with a slash and contain the entries indented below them."""
    paths: list[str] = []
    parents: list[tuple[int, str]] = []  # the indentation and the path of each open folder
    for line in drawing.splitlines():
        depth = len(line) - len(line.lstrip())
        while parents and parents[-1][0] >= depth:
            parents.pop()
        above = parents[-1][1] if parents else ""
        names = re.match(r"(?:[\w/]+(?:\.py|/)(?: +|$))+", line.strip())
        assert names, f"a line of the drawing begins with the names that it is about: {line!r}"
        for name in names[0].split():
            paths.append(above + name)
            if name.endswith("/"):
                parents.append((depth, above + name))
    return paths


def test_a_drawing_is_read_by_its_indentation() -> None:
    drawing = "a/\n  x.py  y.py   two leaves\n  b/   a room; c.py is only spoken of\n    x.py  another x\n  z.py"
    assert drawn_paths(drawing) == ["a/", "a/x.py", "a/y.py", "a/b/", "a/b/x.py", "a/z.py"]


def test_every_package_is_drawn_once_where_it_is() -> None:
    drawn = drawn_paths(blocks((ROOT / "docs" / "dev" / "design.md").read_text(encoding="utf-8"), "")[0])
    twice = sorted({path for path in drawn if drawn.count(path) > 1})
    assert not twice, f"docs/dev/design.md draws these more than once: {twice}"
    gone = [path for path in drawn if not (ROOT / path).exists()]
    assert not gone, f"docs/dev/design.md draws what is not there (moved? renamed?): {gone}"
    packages = {f"src/kotha/{path.parent.name}/" for path in (ROOT / "src" / "kotha").glob("*/__init__.py")}
    missing = sorted(packages - set(drawn))
    assert not missing, f"draw these folders in docs/dev/design.md, with a sentence each: {missing}"


def test_the_map_of_modules_is_fresh() -> None:
    done = subprocess.run([sys.executable, ROOT / "scripts" / "modules.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["index.md", "index.bn.md"])
def test_the_index_links_every_page_of_its_language(name: str) -> None:
    docs, bangla = ROOT / "docs", name.endswith(".bn.md")
    linked = set(re.findall(r"\]\(([\w./-]+\.md)\)", (docs / name).read_text(encoding="utf-8")))
    twins = {path.relative_to(docs).as_posix() for path in docs.rglob("*.bn.md")}
    pages = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")} - twins
    wanted = twins | {page for page in pages if page.replace(".md", ".bn.md") not in twins} if bangla else pages
    assert wanted - linked <= {"index.md", "index.bn.md"}, f"docs/{name} does not link {sorted(wanted - linked)}"


@pytest.mark.parametrize("name", ["serving", "bundled-model", "bangla-text"])
def test_the_code_of_a_page_exists_unchanged_in_its_bangla_twin(name: str) -> None:
    def code(path: Path) -> list[str]:
        lines = "".join(blocks(path.read_text(encoding="utf-8"), r"\w*")).splitlines()
        return [bare for line in lines if (bare := re.sub(r"(^|\s+)# .*", "", line))]  # comments are in Bangla

    assert code(ROOT / "docs" / f"{name}.bn.md") == code(ROOT / "docs" / f"{name}.md")
