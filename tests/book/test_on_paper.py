"""The page of worksheets: its commands run, its files can be read, and its numbers match the models."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from scripts.book.chapters import LEARN

from kotha.cli.main import main
from kotha.course.worksheet.own_matrices import sheet_of_file
from kotha.i18n.numbers import ascii_digits, bangla_digits, by_lakh
from kotha.model.parameters import count_parameters
from kotha.model.presets import preset

PAGES = {"en": LEARN / "on-paper.md", "bn": LEARN / "on-paper.bn.md"}


def own_file(page: Path, folder: Path) -> Path:
    (text,) = re.findall(r"```text\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    (folder / "own.csv").write_text(text, encoding="utf-8")
    return folder / "own.csv"


@pytest.mark.parametrize("language", PAGES)
def test_every_command_runs(language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    own_file(PAGES[language], tmp_path)
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"`(kotha [^`]+)`", PAGES[language].read_text(encoding="utf-8"))
    assert len(commands) >= 10
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0, command
    shown = capsys.readouterr().out
    assert "0.8808" in shown and "আমি" in shown
    assert (tmp_path / "places.svg").stat().st_size > 10_000


def test_the_file_is_one_in_both_languages(tmp_path: Path) -> None:
    sheets = []
    for language, page in PAGES.items():
        (tmp_path / language).mkdir()
        sheets.append(sheet_of_file(own_file(page, tmp_path / language)))
    assert sheets[0].steps["output"].values.tolist() == sheets[1].steps["output"].values.tolist()


def test_what_is_said_of_the_notes() -> None:
    large, small = (count_parameters(preset(name)).total for name in ("gpt2-xl", "gpt2"))
    english, bangla = (page.read_text(encoding="utf-8") for page in PAGES.values())
    vit, bert = preset("vit-base-16"), preset("bert-base")
    patches = (vit.image_size // vit.patch_size) ** 2  # type: ignore[attr-defined]
    for number in (large, small, bert.d_ff):
        assert f"{number:,}" in english and bangla_digits(by_lakh(f"{number:,}")) in bangla
    for number in (
        f"{large / small:.1f}",
        f"{4 * large / 1e9:.1f} GB",
        str(patches),
        str(patches + 1),
        str(bert.d_model),
    ):
        assert number in english and number in ascii_digits(bangla)
