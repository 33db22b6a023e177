"""Benchmark rounds: medians and ratios, and the order in which implementations run or are skipped."""

from collections.abc import Callable

import pytest
import torch

from kotha.api.bench.rounds import BenchmarkResult, measure_rounds
from kotha.errors import KothaError, UsageError

CPU = torch.device("cpu")


def quiet(stage: str, done: int, total: int) -> None:
    pass


def noting(name: str, notes: list[str]) -> Callable[[], Callable[[], None]]:
    return lambda: lambda: notes.append(name)


def test_rates_and_ratios_are_those_of_the_median_rounds() -> None:
    outcome = BenchmarkResult("made up", "tokens", 60.0, {"kotha": [1.0, 30.0, 2.0], "peer": [3.0, 6.0, 4.0]})
    assert outcome.implementations() == {
        "kotha": {"per_second": 30.0, "slowest": 2.0, "fastest": 60.0, "ratio": 1.0},
        "peer": {"per_second": 15.0, "slowest": 10.0, "fastest": 20.0, "ratio": 2.0},
    }


def test_implementations_alternate_and_the_order_reverses_every_other_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kotha.api.bench.rounds._ROUND_SECONDS", 0.0)
    notes: list[str] = []
    outcome = BenchmarkResult("", "tokens", 1.0)
    measure_rounds(outcome, {name: noting(name, notes) for name in "ab"}, CPU, 4, quiet)
    assert "".join(notes) == "aabb" + "ab" + "ba" + "ab" + "ba", "each is warmed up first"
    assert {name: len(each) for name, each in outcome.seconds.items()} == {"a": 4, "b": 4}


def test_a_failing_peer_is_a_remark_and_a_failing_kotha_an_error() -> None:
    def broken() -> Callable[[], None]:
        raise KothaError("it is not installed")

    notes: list[str] = []
    outcome = BenchmarkResult("", "tokens", 1.0)
    measure_rounds(outcome, {"kotha": noting("kotha", notes), "peer": broken}, CPU, 1, quiet)
    assert list(map(str, outcome.remarks)) == ["peer was not measured: it is not installed"]
    assert list(outcome.implementations()) == ["kotha"]
    with pytest.raises(KothaError, match="not installed"):
        measure_rounds(BenchmarkResult("", "tokens", 1.0), {"kotha": broken}, CPU, 1, quiet)


@pytest.mark.parametrize("rounds", [0, -1, 10**9])
def test_invalid_numbers_of_rounds_are_rejected(rounds: int) -> None:
    with pytest.raises(UsageError, match=rf"rounds={rounds} is out of range; use 1 to 1,000"):
        measure_rounds(BenchmarkResult("", "tokens", 1.0), {}, CPU, rounds, quiet)
