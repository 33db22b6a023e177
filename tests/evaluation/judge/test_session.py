"""Judging sessions: blind and balanced pairs, judgements that are saved immediately, files merged or rejected."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kotha.errors import DataError, KothaError, UsageError
from kotha.evaluation.judge.session import JudgingSession, judging_page

PROMPTS = [f"শুরু {number}" for number in range(30)]


def started(path: Path, models: tuple[str, ...] = ("run/a", "run/b", "run/c"), **how: int) -> JudgingSession:
    written = {name: [f"{prompt} লিখল {place}" for prompt in PROMPTS] for place, name in enumerate(models)}
    return JudgingSession.start(path, PROMPTS, written, **how)


def test_every_two_models_are_paired_on_every_prompt_in_random_order(tmp_path: Path) -> None:
    judging = started(tmp_path / "j")
    assert len(judging.pairs) == 30 * 3 == len({pair.id for pair in judging.pairs})
    first = Counter(pair.models[0] for pair in judging.pairs)
    assert all(15 <= first[name] <= 45 for name in judging.models), "none is always first"
    one, other = (judging.left_for(judge) for judge in ("মিনা", "রহিম"))
    assert set(one) == set(other) == set(judging.pairs) and one != other, "each judge has an order"
    assert one == judging.left_for("মিনা")
    assert started(tmp_path / "k").pairs == judging.pairs != started(tmp_path / "l", seed=1).pairs
    assert JudgingSession.open(tmp_path / "j") == judging


def test_the_page_is_blind(tmp_path: Path) -> None:
    html = judging_page(started(tmp_path / "j", ("সেরা-মডেল", "মন্দ-মডেল")))
    assert "সেরা-মডেল" not in html and "মন্দ-মডেল" not in html
    assert "শুরু 7 লিখল 1" in html


def test_judgements_are_saved_at_once_and_resume(tmp_path: Path) -> None:
    judging = started(tmp_path / "j")
    pair = judging.left_for("মিনা")[0]
    judging.record("মিনা", pair.id, "left")
    again = JudgingSession.open(tmp_path / "j")
    assert again.said_by("মিনা") == {pair.id: "left"} and len(again.left_for("মিনা")) == 89
    again.record("মিনা", pair.id, "tie")
    again.record("মিনি", pair.id, "right")
    assert again.judgements() == {"মিনা": {pair.id: "tie"}, "মিনি": {pair.id: "right"}}, "two names, two files"
    with pytest.raises(UsageError, match="name is empty"):
        again.record(" ", pair.id, "left")


def test_files_of_the_page_are_merged_and_those_of_another_session_rejected(tmp_path: Path) -> None:
    judging = started(tmp_path / "j")
    ids = [pair.id for pair in judging.pairs]
    result = {
        "format": "kotha-judgements",
        "pairs": judging.fingerprint,
        "judge": "../রহিম",
        "judgements": {ids[0]: "tie"},
    }
    file = tmp_path / "from-page.json"
    file.write_text(json.dumps(result), encoding="utf-8")
    assert judging.collect(file) == ("../রহিম", 1)
    assert judging.judgements() == {"../রহিম": {ids[0]: "tie"}}
    assert {each.parent for each in tmp_path.rglob("*.json")} == {
        tmp_path,
        tmp_path / "j",
        tmp_path / "j" / "judgements",
    }
    for change, message in (
        ({"pairs": "0"}, "contains judgements of pairs that are not in"),
        ({"judgements": {"nothing": "left"}}, "is not a file of judgements"),
        ({"judgements": {ids[0]: "both"}}, "is not a file of judgements"),
        ({"format": "x"}, "is not a file of judgements"),
        ({"judge": 5}, "is not a file of judgements"),
    ):
        file.write_text(json.dumps({**result, **change}), encoding="utf-8")
        with pytest.raises(KothaError, match=message):
            judging.collect(file)
    assert len(judging.judgements()) == 1


def test_the_result_has_the_stronger_model_and_the_agreement(tmp_path: Path) -> None:
    judging = started(tmp_path / "j")
    strong = {"run/a": 2, "run/b": 1, "run/c": 0}
    for judge, careless in (("মিনা", 0), ("রহিম", 7)):
        for number, pair in enumerate(judging.pairs):
            left, right = (strong[name] for name in pair.models)
            choice = (
                "tie"
                if number % 5 == 0
                else "left"
                if (left > right) != (careless and number % careless == 0)
                else "right"
            )
            judging.record(judge, pair.id, choice)
    result = judging.result()
    assert [each.model for each in result.standings] == ["run/a", "run/b", "run/c"]
    best = result.standings[0]
    assert best.low > result.standings[-1].high and best.wins + best.ties + best.losses == 2 * 60
    assert result.judges == {"মিনা": 90, "রহিম": 90} and result.agreement.things == 90
    assert result.agreement.share == pytest.approx(1 - sum(n % 7 == 0 and n % 5 != 0 for n in range(90)) / 90)
    meeting = result.meetings[0]
    assert (meeting.one, meeting.other) == ("run/a", "run/b") and meeting.low < meeting.chance < meeting.high
    assert result.to_dict()["agreement"]["alpha"] < 1


def test_invalid_sessions_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="wrote the same text for every prompt"):
        JudgingSession.start(tmp_path / "j", ["ক"], {"a": ["খ"], "b": ["খ"]})
    with pytest.raises(UsageError, match="at least two models"):
        JudgingSession.start(tmp_path / "j", ["ক"], {"a": ["খ"]})
    with pytest.raises(KothaError, match="is not a judging session"):
        JudgingSession.open(tmp_path / "j")
    judging = JudgingSession.start(tmp_path / "j", ["ক", "গ"], {"a": ["খ", "১"], "b": ["খ", "২"]})
    assert (len(judging.pairs), judging.same) == (1, 1), "who wrote the same is not asked about"
    with pytest.raises(DataError, match="no judgements in"):
        judging.result()
    (tmp_path / "j" / "pairs.json").write_text('{"format": "kotha-judging", "format_version": 1, "pairs": [{"id": 1}]}')
    with pytest.raises(KothaError, match="is not a judging session that this version of Kotha can read"):
        JudgingSession.open(tmp_path / "j")


@pytest.mark.parametrize("change", [
    {"same": 1e999}, {"models": ["a", "b", "a"]}, {"pairs": [{"left": "\ud800"}]}, {"pairs": [{"prompt": ["ক"]}]},
    {"pairs": [{"models": ["a", "a"]}]}, {"pairs": [{"models": ["a", "b", "a"]}]},
], ids=str)  # fmt: skip
def test_invalid_pairs_are_rejected(tmp_path: Path, change: dict[str, Any]) -> None:
    JudgingSession.start(tmp_path / "j", ["ক"], {"a": ["খ"], "b": ["গ"]})
    file = tmp_path / "j" / "pairs.json"
    result = json.loads(file.read_text(encoding="utf-8"))
    if "pairs" in change:
        change = {"pairs": [{**result["pairs"][0], **change["pairs"][0]}]}
    file.write_text(json.dumps({**result, **change}), encoding="utf-8")
    with pytest.raises(KothaError, match="is not a judging session that this version of Kotha can read"):
        JudgingSession.open(tmp_path / "j")
