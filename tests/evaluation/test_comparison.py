"""Comparison of models: comparable scores, and the reasons for omitting the others."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kotha.evaluation.comparison import MeasuredText, compare, comparison_table, row_of_run, row_of_score, validation_of
from kotha.evaluation.perplexity import Contamination, evaluate_text
from kotha.model.parameters import count_parameters
from kotha.model.presets import preset
from kotha.text.held_out import from_texts

TEXT = MeasuredText(documents=383, bytes=1_000_000)


def row(name: str = "run", tokenizer: str = "a" * 32, measured: MeasuredText | None = TEXT, **more: Any) -> Any:
    config = {"model": preset("pocket").to_dict(), "task": "next-token", "data": {"tokenizer": tokenizer}, **more}
    summary = {"steps": 400, "best_step": 200, "tokens": 10**6, "loss_nats": 4.0, "bits_per_byte": 0.8}
    made = row_of_run(name, config, {**summary, "bits_per_character": 2.1})
    return made.__class__(**{**made.__dict__, "measured": measured})


def test_a_row_describes_its_run() -> None:
    made = row()
    pocket = preset("pocket")
    assert made.model == f"gpt {pocket.n_layers}x{pocket.d_model}"
    assert made.parameters == count_parameters(pocket).total
    assert (made.steps, made.best_step, made.tokens) == (400, 200, 10**6)
    assert (made.bits_per_byte, made.bits_per_character) == (0.8, 2.1)
    assert made.perplexity == pytest.approx(math.exp(4))


def test_perplexity_is_shown_for_one_tokenizer_and_one_text() -> None:
    found = compare([row("one"), row("other")])
    assert [each.kind for each in found.reasons] == ["trainings"]
    assert all(each.perplexity for each in found.rows)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"tokenizer": "b" * 32}, "2 different tokenizers (aaaaaaaa, bbbbbbbb), and perplexity is per token"),
        ({"measured": MeasuredText(400, 1_000_000)}, "evaluated on 2 different texts"),
        ({"measured": MeasuredText(383, 900_000)}, "evaluated on 2 different texts"),
        ({"measured": None}, "The text that was used to evaluate other is unknown"),
        ({"task": "masked-words"}, "these models were trained on masked-words, next-token"),
        (
            {"tokenizer": "b" * 32, "measured": MeasuredText(383, 999_000)},
            "Bits per byte and per character measure the text itself",
        ),
    ],
)
def test_incomparable_scores_are_omitted_with_a_reason(other: dict[str, Any], message: str) -> None:
    """Two tokenizers normalize the same text slightly differently."""
    found = compare([row("one"), row("other", **other)])
    remark, _ = found.reasons
    assert message in str(remark.message)
    assert [(each.perplexity, each.bits_per_byte) for each in found.rows] == [(None, 0.8)] * 2


def test_broken_files_give_a_row_with_gaps() -> None:
    made = row_of_run("old", {"model": {"family": "gpt"}, "data": 3}, {"loss_nats": None, "steps": "many"})
    assert (made.model, made.parameters, made.steps, made.perplexity) == ("gpt ?x?", None, None, None)
    assert row_of_run("none", {}, {}).model == "?"


def test_an_evaluation_replaces_the_scores_of_training(tiny, tokenizer, data) -> None:
    model = tiny()
    score = evaluate_text(model, from_texts(["আমি ভাত খাই।"], tokenizer))
    made = row_of_score(row_of_run("folder", {"model": model.config.to_dict()}, {}), score)
    assert made.perplexity == score.perplexity
    assert made.measured == MeasuredText(1, score.bytes)
    info = data["validation"].info
    assert validation_of(data.path) == MeasuredText(info.documents, info.bytes)
    assert validation_of(data.path / "nowhere") is None


# -- a best model, or none --------------------------------------------------------------------------------------------

NEW, LEARNED = Contamination(40, 0, 0, "new"), Contamination(40, 40, 0, "seen in training")
NATS = np.random.default_rng(0).uniform(50, 90, 40)


def measured(name: str, seen: Contamination | None) -> Any:
    return replace(row(name), seen=seen)


def test_a_best_model_is_named_if_its_lead_is_significant() -> None:
    found = compare([measured("one", NEW), measured("other", NEW)], [NATS, NATS * 0.9], "text.txt")
    assert (found.best, found.reasons) == ("other", [])
    table = comparison_table(found)
    assert set(table.marks.values()) == {"best"}
    assert {at for at, _ in table.marks} == {1}
    assert table.cells[0][[*map(str, table.header)].index("this text")] == "new"


@pytest.mark.parametrize(
    ("seen", "other", "nats", "why"),
    [
        (NEW, LEARNED, [NATS, NATS * 0.5], "this text, or part of it, was in the training data of other"),
        (NEW, None, [NATS, NATS * 0.5], "it is unknown whether this text was in the training data of other"),
        (NEW, NEW, [NATS, NATS[::-1] * 0.999], "the difference between one and other is not significant"),
        (NEW, NEW, [NATS, NATS], "the difference between one and other is not significant"),
        (NEW, NEW, [NATS[:5], NATS[:5] * 0.5], "5 documents are too few to tell a difference from chance"),
        (NEW, NEW, None, "training metrics cannot show whether a difference is significant"),
    ],
)
def test_no_best_model_is_named_if_it_is_unfair_or_chance(seen: Any, other: Any, nats: Any, why: str) -> None:
    found = compare([measured("one", seen), measured("other", other)], nats, "text.txt")
    assert found.best is None
    result = str(found.reasons[-1].message)
    assert why in result or why in result.replace("other and one", "one and other")
    assert not comparison_table(found).marks


def test_one_model_alone_needs_no_reason() -> None:
    assert compare([row()]).reasons == []


def test_a_tokenizer_that_loses_text_is_not_ranked_with_others() -> None:
    """Its model would be rewarded for what it does not have to predict."""
    lossy = replace(row("lossy"), tokenizer="b" * 32, bits_per_byte=0.1, changed=3)
    found = compare([row("one"), lossy], [np.full(20, 5.0), np.full(20, 1.0)], "text")
    assert found.best is None and [each.kind for each in found.reasons] == ["tokenizers", "changed"]
    assert [each.bits_per_byte for each in found.rows] == [0.8, None]
    assert "Bits per byte and per character of lossy are omitted" in str(found.reasons[1].message)
    same = compare([replace(row("one"), changed=3), replace(lossy, tokenizer="a" * 32)])
    assert [each.bits_per_byte for each in same.rows] == [0.8, 0.1], "both lose the same"
