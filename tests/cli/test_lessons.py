"""``kotha lessons`` lists the lessons and runs them."""

import json

import pytest

from kotha.cli.main import main


def test_the_lessons_are_listed_in_both_languages(capsys, monkeypatch) -> None:
    assert main(["lessons"]) == 0
    assert "What happens without the causal mask?" in capsys.readouterr().out
    assert main(["lessons", "--language", "bn"]) == 0
    assert "ভবিষ্যৎ-আড়াল মাস্ক না থাকলে কী হয়?" in capsys.readouterr().out
    monkeypatch.setenv("KOTHA_LANGUAGE", "bn")
    assert main(["lessons"]) == 0
    assert "ভবিষ্যৎ-আড়াল মাস্ক না থাকলে কী হয়?" in capsys.readouterr().out
    assert main(["lessons", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"name", "question", "minutes"} == set(found[0])


def test_a_lesson_runs_and_is_saved(tmp_path, capsys) -> None:
    out = tmp_path / "kept"
    assert main(["lessons", "run", "mask", "--seeds", "1", "--steps", "2", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "with the mask" in shown and "loss with the future hidden" in shown
    kept = json.loads((out / "mask.json").read_text(encoding="utf-8"))
    assert kept["command"] == "kotha lessons run mask --seeds 1 --steps 2"
    assert {"machine", "versions", "seconds", "seeds", "sizes"} <= set(kept["about"])
    assert (out / "mask.svg").read_text(encoding="utf-8").startswith("<svg xmlns=")
    assert kept["reading"][0]["en"] in shown

    assert main(["lessons", "run", "mask", "--seeds", "1", "--steps", "2", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["conditions"] == kept["conditions"], "the same seed gives the same figures"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "masks"], "unknown lesson 'masks'; did you mean 'mask'?"),
        (["run"], "lessons run needs NAME; see kotha lessons run --help"),
        (["run", "mask", "--steps", "0"], "--steps 0 is too low"),
        (["run", "mask", "--seeds", "0"], "--seeds 0 is out of range; use 1 to 100"),
    ],
)
def test_usage_errors_are_one_line(words: list[str], message: str, capsys) -> None:
    assert main(["lessons", *words]) == 2
    assert message in capsys.readouterr().err
