"""How cost grows: what is measured, that it grows, and that the pictures hold both lines."""

import os

import pytest
from tests.report.shown import Shown, text

from kotha.api.bench import growth
from kotha.api.bench.growth import Cost, Growth, Start, grown_models, measure_growth
from kotha.model.parameters import count_parameters

SMALL = Start(width=32, depth=1, context=16, words=512, tokens=64, factors=(1, 4))


def test_one_size_grows_at_a_time() -> None:
    models = grown_models(SMALL)
    assert list(models) == ["width", "depth", "context", "vocabulary"]
    (_, first), _ = models["width"]
    assert all(line[0][1] == first for line in models.values()), "all begin at the same model"
    changed = [{name for name, value in line[1][1].to_dict().items() if value != first.to_dict()[name]}
               for line in models.values()]  # fmt: skip
    assert changed == [{"d_model", "n_heads", "n_kv_heads", "d_ff"}, {"n_layers"}, {"context_length"}, {"vocab_size"}]


def test_each_is_measured_in_a_process_of_its_own() -> None:
    assert growth._elsewhere(os.getpid) != os.getpid()


def test_every_point_is_measured_and_foretold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "_elsewhere", lambda work, *arguments: work(*arguments))  # a process takes seconds
    monkeypatch.setattr(growth, "_ROUNDS", 1)
    told: list[tuple[str, int, int]] = []
    found = measure_growth("float32", lambda what, *news: told.append((str(what), *news)), "cpu", SMALL)
    assert told[0] == ("measuring", 0, 8)
    assert told[-1] == ("measuring", 8, 8)
    assert [len(line) for line in found.lines().values()] == [2, 2, 2, 2]
    for cost in found.costs:
        assert cost.tokens_per_second > 0
        assert cost.foretold_tokens_per_second > 0
        assert cost.memory_bytes > 50e6, "an interpreter with torch has more"
    weights = {name: 4 * count_parameters(line[-1][1]).total for name, line in grown_models(SMALL).items()}
    planned = {name: line[-1].foretold_memory_bytes - line[0].foretold_memory_bytes
               for name, line in found.lines().items()}  # fmt: skip
    assert planned["vocabulary"] > 2 * (weights["vocabulary"] - weights["context"]), "weights, gradients, two means"
    assert found.to_dict()["costs"][0]["grown"] == "width"


def test_the_page_has_both_lines_of_every_size() -> None:
    costs = [Cost(name, value, 1e4 / value, value * 10**6, 2e4 / value, value * 10**6)
             for name, line in grown_models(SMALL).items() for value, _ in line]  # fmt: skip
    page = Shown(Growth(costs, SMALL, {"processor": "a <slow> one"}, "float32").document().html())
    charts = page.blocks("curves")
    assert len(charts) == 8
    assert [text(line["name"]) for line in charts[0]["lines"]] == ["measured", "foretold"]
    assert text(charts[0]["caption"]) == "4 times the width: 4 times as long."
    assert "From 1 layer of 32," in text(page.data["lead"]) and "a <slow> one" not in page.html
