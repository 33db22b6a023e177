"""Long prompts are read in chunks while other requests run, and common prefixes are reused, with the same output."""

from typing import Any

import pytest
import torch
from tests.generation.conftest import tiny

from kotha.generation import prefill, torch_decoder
from kotha.generation.engine import Engine
from kotha.generation.native_decoder import NativeDecoder
from kotha.generation.plain import continue_plainly
from kotha.generation.request import Request
from kotha.generation.settings import SamplingSettings

DRAWN = SamplingSettings(seed=5, top_k=10, repetition_penalty=1.2)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(torch_decoder._PIECE, "cpu", 4)
    monkeypatch.setattr(NativeDecoder, "piece", 4)


def ids(count: int, seed: int = 0) -> tuple[int, ...]:
    return tuple(torch.randint(30, (count,), generator=torch.Generator().manual_seed(seed)).tolist())


@pytest.mark.parametrize("layout", ["classic", "modern"])
@pytest.mark.parametrize("length", [1, 3, 5, 6, 8, 9, 13, 23, 24, 25, 40])
@pytest.mark.parametrize("weights", [None, "float32"], ids=["the model", "in C"])
def test_a_prompt_in_pieces_equals_the_plain_version(layout: str, length: int, weights: Any) -> None:
    model = tiny(layout, context_length=24, vocab_size=30)
    [result] = Engine(model, None, weights=weights).generate([Request(prompt=ids(length), tokens=30, settings=DRAWN)])
    assert list(result.ids) == continue_plainly(model, ids(length), 30, DRAWN)


def test_other_requests_continue_while_a_long_prompt_is_read() -> None:
    engine = Engine(tiny(context_length=64, vocab_size=30), None, max_batch=2)
    short = engine.submit(Request(prompt=ids(2), tokens=40, settings=DRAWN))
    engine.step()
    long = engine.submit(Request(prompt=ids(41), tokens=2, settings=DRAWN))
    written = []
    for _ in range(9):  # forty tokens before the last one, four per step
        assert not engine.step()
        written.append(engine._active[0].scheduled)
    assert written == list(range(2, 11)), "one token for the short prompt in every step"
    finished = {event.number: event.result for _ in range(60) for event in engine.step()}
    assert finished[long].ids == tuple(continue_plainly(engine.model, ids(41), 2, DRAWN))
    assert finished[short].ids == tuple(continue_plainly(engine.model, ids(2), 40, DRAWN))


def test_two_long_prompts_take_turns_and_count_as_rows() -> None:
    engine = Engine(tiny(context_length=64, vocab_size=30), None, max_batch=2)
    for length in (17, 33, 9):
        engine.submit(Request(prompt=ids(length), tokens=1, settings=DRAWN))
    engine.step()
    assert len(engine._reading) == 2 and len(engine._waiting) == 1 and engine.n_free == 0
    engine.step()
    assert sorted(prompt.read for _, prompt in engine._reading) == [4, 4]
    while engine.busy:
        engine.step()
    assert not engine._reading and not engine._active


@pytest.mark.parametrize("weights", [None, "float32"], ids=["the model", "in C"])
def test_a_common_prefix_is_reused_bit_for_bit(weights: Any) -> None:
    model = tiny("modern", context_length=64, vocab_size=30)
    kept = Engine(model, None, weights=weights, kept_bytes=1 << 20)
    first, other = ids(21), (*ids(21)[:14], *ids(9, seed=1))
    for prompt in (first, other, first):
        fresh = Engine(model, None, weights=weights)
        asked = Request(prompt=prompt, tokens=12, settings=DRAWN, alternatives=3)
        assert kept.generate([asked])[0].written == fresh.generate([asked])[0].written
    # The second request reuses the three chunks that are equal; the third reuses all five chunks before its last token.
    assert kept.prompts.tokens_reused == 12 + 20


def test_the_prefix_cache_is_limited_and_evicts_the_oldest() -> None:
    model = tiny(context_length=64, vocab_size=30)
    one = prefill.Prompt(ids(20), Engine(model, None)._decoder.new_cache(20)).cache.n_bytes
    engine = Engine(model, None, kept_bytes=2 * one + 10)
    for seed in (0, 1, 0, 2):
        engine.generate([Request(prompt=ids(21, seed), tokens=1, settings=DRAWN)])
    assert [key[:5] for key in engine.prompts._kept] == [ids(21, seed)[:5] for seed in (0, 2)]
    engine.generate([Request(prompt=ids(61), tokens=1, settings=DRAWN)])
    assert len(engine.prompts._kept) == 2, "a prompt larger than the limit is not cached"


def test_cancelling_during_prefill_frees_the_row() -> None:
    engine = Engine(tiny(context_length=64, vocab_size=30), None, max_batch=1)
    leaving = engine.submit(Request(prompt=ids(41), tokens=5, settings=DRAWN))
    next_one = engine.submit(Request(prompt=ids(3), tokens=5, settings=DRAWN))
    engine.step()
    engine.cancel(leaving)
    news: list[Any] = [event for _ in range(10) for event in engine.step()]
    ends = {event.number: event.result.stopped for event in news if event.result is not None}
    assert ends == {leaving: "cancelled", next_one: "length"}
    assert not engine.busy
