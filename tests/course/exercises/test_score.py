"""Score files: graded again from the numbers up, whatever they say of themselves."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from kotha.cli.main import main
from kotha.course.exercises.score import check_score, checksum, points_for, read_class
from kotha.errors import DataError

FILE = Path(__file__).parents[3] / "web/tests/data/score.json"
CASES = json.loads((FILE.parent / "typed.json").read_text(encoding="utf-8"))


@pytest.fixture
def told() -> Any:
    return json.loads(FILE.read_text(encoding="utf-8"))


def test_every_answer_is_graded_again(told: Any) -> None:
    (score,) = read_class([FILE])
    assert (score.points, score.possible, score.name, score.state) == (30, 288, "রহিমা", "unsigned")
    assert score.note == "claims 34 points; not right: V[1,1]"
    assert {step.name: (step.right, step.shown) for step in score.steps}["K"] == (1, 1)


def test_what_was_changed_is_seen(told: Any) -> None:
    changed = copy.deepcopy(told)
    changed["answers"][0]["tries"] = ["0.38"]
    score = check_score(changed)
    assert score.state == "changed" and "not right: Q[1,1]" in score.note
    changed["checksum"] = checksum(changed)
    assert check_score(changed).state == "unsigned", "a checksum is no proof"


def test_later_steps_take_one_s_own_numbers(told: Any) -> None:
    """Q[1,1] was given as 0.37 exactly; a product from 0.40 would fit only if 0.40 had been right."""
    own = copy.deepcopy(told)
    own["answers"] = [
        {"cell": "products[1,1]", "tries": ["0.42"], "hints": 0, "verdict": "right", "points": 4},
        {"cell": "scores[1,1]", "tries": ["0.29698"], "hints": 0, "verdict": "right", "points": 4},
    ]
    assert "not right" not in check_score(own).note  # 0.42 / √2
    own["answers"][0]["tries"] = ["0.4218"]
    assert "not right: scores[1,1]" in check_score(own).note


@pytest.mark.parametrize("case", CASES["points"])
def test_points_fall_as_on_the_page(case: dict[str, Any]) -> None:
    assert points_for(case["wrong"], case["hints"], case["shown"]) == case["points"]


@pytest.mark.parametrize(
    ("change", "message"),
    [({"kind": "else"}, "no score file"), ({"version": 9}, "version 9"), ({"given": {}}, "not whole")],
)
def test_what_is_no_score_file_is_refused(told: Any, change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_score({**told, **change})


def test_the_command_tells_it(tmp_path: Path, capsys: pytest.CaptureFixture[str], told: Any) -> None:
    main(["inside", "score", str(FILE), "--json"])
    assert json.loads(capsys.readouterr().out)[0]["points"] == 30
    main(["inside", "score", str(FILE)])
    said = capsys.readouterr().out
    assert "30 / 288" in said and "claims 34 points" in said and "not who did the work" in said
    broken = tmp_path / "score.json"
    broken.write_text("{", encoding="utf-8")
    assert "is broken" in read_class([broken])[0].note
