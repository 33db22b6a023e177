"""The how-to guides: commands in console blocks run in order and print the output shown; other commands exist.

Commands in ``sh`` blocks need other machines or programs, so only their names and flags are checked.
"""

import io
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from scripts.book.examples import examples
from tests.prepared import write_pairs
from tests.shown import Pages
from tests.test_docs import blocks

import kotha
from kotha.cli.main import COMMANDS, main

HOWTO = Path(__file__).parents[1] / "docs" / "howto"
PAGES = sorted(HOWTO.glob("*.md"))
ENGLISH = [page for page in PAGES if not page.name.endswith(".bn.md")]
SHOWN = [*PAGES, *(HOWTO.parent / f"{name}.md" for name in ("troubleshooting", "bundled-model", "studio"))]
# Replacements that make a command faster: a small model for box, two steps for minutes.
SHORTER = {
    r"--documents \d+": "--documents 60",
    r"--vocab-size \d+": "--vocab-size 700",
    r"--from model --out (\w+) --minutes \d+": r"--from model --out \1 --steps 1 --set batch_size=1 context_length=32",
    r"--preset bangla-modern --recipe modern --out": "--preset bangla-modern --recipe modern --steps 2 --out",
    r"train data --minutes \d+": "train data --preset pocket --steps 2",
    r"((?:train|sweep) .*)--minutes \d+": r"\1--steps 2",
    r"--trials \d+": "--trials 3",
    r"(--steps 2)": r"\1 --set batch_size=4 context_length=64 d_model=64 n_heads=2 d_ff=128",
    r"--epochs \d+": "--epochs 0.2",
    r"export box": "export run",
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reader's files: texts, a table of comments, pairs, conversations, and a trained model."""
    folder = tmp_path_factory.mktemp("world")
    (folder / "texts").mkdir()
    for seed in range(3):
        kotha.write_stories(folder / "texts" / f"{seed}.txt", documents=20, seed=seed)
    kotha.write_stories(folder / "stories.jsonl", documents=60)
    rows = [json.loads(line) for line in (folder / "stories.jsonl").read_text(encoding="utf-8").splitlines()]
    table = ["text,kind", *(f'"{row["text"].split("।")[0]}",{row["kind"]}' for row in rows)]
    (folder / "comments.csv").write_text("\n".join(table) + "\n", encoding="utf-8")
    write_pairs(folder / "pairs.tsv", 12)
    turns = [{"instruction": f"নাম {n}?", "output": f"{n}।"} for n in range(40)]
    lines = [json.dumps(each, ensure_ascii=False) for each in turns]
    (folder / "conversations.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    tokenizer = kotha.train_tokenizer(folder / "stories.jsonl", vocab_size=700)
    data = kotha.prepare(folder / "stories.jsonl", tokenizer, folder / "data")
    sizes = {"context_length": 64, "d_model": 64, "n_heads": 2, "n_kv_heads": 2, "d_head": 32, "d_ff": 128}
    kotha.train(data, preset="pocket", steps=2, batch_size=4, out=folder / "run", **sizes)
    return folder


@pytest.mark.parametrize("page", ENGLISH, ids=lambda path: path.stem)
def test_the_commands_of_a_how_to_run_in_their_order(
    page: Path, world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    shutil.copytree(world, here)
    if page.stem == "01-own-text":  # this page creates its own files
        for made in ("texts", "data", "run"):
            shutil.rmtree(here / made)
    monkeypatch.chdir(here)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("KOTHA_LANGUAGE", raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO())  # no answers for the tutor
    Pages(page, SHORTER).check()


@pytest.mark.parametrize("page", SHOWN, ids=lambda path: path.stem)
def test_commands_that_are_only_shown_exist_with_their_flags(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = page.read_text(encoding="utf-8")
    shown = [line for block in blocks(text, "sh") for line in block.splitlines()] + re.findall(r"`(kotha [^`]+)`", text)
    for line in shown:
        for command in re.findall(r"\bkotha ([^&|]+)", line):
            words = shlex.split(command)
            assert words[0] in COMMANDS, line
            group = words[:2] if len(words) > 1 and main([*words[:2], "--help"]) == 0 else words[:1]
            capsys.readouterr()
            main([*group, "--help"])
            told = capsys.readouterr().out
            assert [flag for flag in words if flag.startswith("--") and flag not in told] == [], line


@pytest.mark.parametrize("page", ENGLISH, ids=lambda path: path.stem)
def test_a_page_in_bangla_has_commands_of_its_twin(page: Path) -> None:
    def commands(path: Path) -> list[str]:
        found = [each.command for each in examples(path.read_text(encoding="utf-8"))]
        return [line.removesuffix(" --language bn") for line in found]

    twin = page.with_name(page.name.replace(".md", ".bn.md"))
    assert bool(commands(twin)) == bool(commands(page))
    assert [line for line in commands(twin) if line not in commands(page)] == []
    only_shown = blocks(twin.read_text(encoding="utf-8"), "sh")
    assert only_shown == blocks(page.read_text(encoding="utf-8"), "sh")


def test_there_is_a_page_for_each_thing_that_is_asked_for() -> None:
    assert len(ENGLISH) >= 9
