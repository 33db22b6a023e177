"""Designs for a budget: a proposed design can be built and fits; too little text, memory or time is reported."""

from dataclasses import replace
from pathlib import Path

import pytest

from kotha.errors import ConfigError, DataError, KothaError, UsageError
from kotha.model.config import GPTConfig
from kotha.model.family import build
from kotha.model.presets import preset
from kotha.training.plan.design import Budget, Design, budget_for, propose
from kotha.training.plan.memory import plan_memory
from kotha.training.plan.render import reasons_for
from kotha.training.plan.rules import choose_vocabulary, rates_for
from kotha.training.plan.step_time import GPUS, count_work
from kotha.training.plan.text_size import TextSize, measure_text

NEWS = TextSize("news", 32_000_000, 12_000_000, 7000, 2_800_000, 8192, 150_000)
SPEED = 2e10  # operations per second of a slow machine


def pace(model, settings, _size: int, context: int) -> float:
    return settings.batch_size * context * count_work(model, context).training_per_token / SPEED


SLOW = Budget("cpu", "float32", 4 * 10**9, 30, 10.0, SPEED, SPEED, pace)


def check(design: Design, budget: Budget) -> None:
    """Check that a design can be built, and that it fits the predicted memory and time."""
    model, settings = design.model, design.settings
    assert sum(each.numel() for each in build(model, "meta").parameters()) == design.parameters
    assert settings.micro_batch_size is not None
    assert settings.context_length is not None
    how = budget.how(settings.context_length)
    assert plan_memory(model, settings, settings.micro_batch_size, how).total <= budget.memory_bytes
    assert settings.steps * budget.pace(model, settings, settings.micro_batch_size, settings.context_length) <= (
        60 * budget.minutes
    )
    assert design.epochs <= 20.1
    assert not design.considered[-1].verdict
    assert all(each.verdict for each in design.considered[:-1])


def test_a_slow_machine_gets_a_small_model_and_reasons() -> None:
    design = propose(NEWS, SLOW)
    check(design, SLOW)
    assert design.parameters < NEWS.bytes
    reasons = {str(what): (str(value), str(why)) for what, value, why in reasons_for(design, NEWS)}
    assert {"vocabulary", "layers x width", "heads", "context", "batch", "steps"} <= set(reasons)
    assert reasons["vocabulary"] == ("8,192", "the vocabulary of the data folder's tokenizer")
    assert all(why for _, why in reasons.values())


def test_more_time_and_more_speed_give_more_model() -> None:
    small = propose(NEWS, SLOW)
    longer = propose(NEWS, replace(SLOW, minutes=600))
    gpu = budget_for(30, gpu=GPUS["h200"])
    fast = propose(NEWS, gpu)
    check(fast, gpu)
    assert small.parameters < longer.parameters <= fast.parameters
    assert (fast.model.n_layers, fast.model.d_model) == (8, 512)  # the best rates for the news data
    assert fast.text_ends


@pytest.mark.slow
def test_less_memory_gives_a_smaller_batch_or_model() -> None:
    gpu = budget_for(5, 1_300_000_000, gpu=GPUS["t4"])
    design = propose(NEWS, gpu)
    check(design, gpu)


def test_too_little_memory_is_rejected_with_the_memory_needed() -> None:
    with pytest.raises(
        ConfigError, match=r"0\.3 GB of memory is not enough for 2 layers .* at least 0\.5 GB"
    ) as refused:
        propose(NEWS, replace(SLOW, memory_bytes=300_000_000))
    enough = replace(SLOW, memory_bytes=int(1e9 * float(str(refused.value).split()[-2])))
    check(propose(NEWS, enough), enough)


def test_very_little_time_still_gives_a_few_steps() -> None:
    design = propose(NEWS, replace(SLOW, minutes=0.01))
    assert (design.model.n_layers, design.model.d_model) == (2, 64)
    assert 0 < design.settings.steps < 20


def test_a_busy_machine_gets_small_steps_instead_of_few() -> None:
    busy = replace(SLOW, minutes=2, pace=lambda *given: 20 * pace(*given))
    design = propose(NEWS, busy)
    check(design, busy)
    assert design.settings.batch_size < propose(NEWS, replace(SLOW, minutes=2)).settings.batch_size
    assert design.settings.steps > 50


def test_given_sizes_are_kept_and_the_rest_follows_the_rules() -> None:
    pocket = preset("pocket").replace(vocab_size=8192)
    assert isinstance(pocket, GPTConfig)
    design, short = propose(NEWS, replace(SLOW, minutes=2), {"seed": 3}, pocket), replace(SLOW, minutes=2)
    settings, chosen = design.settings, propose(NEWS, short).settings
    assert (design.model.n_layers, design.model.d_model) == (pocket.n_layers, pocket.d_model)
    assert design.model.context_length == settings.context_length == 128
    assert (settings.batch_size, settings.seed, settings.dropout) == (chosen.batch_size, 3, 0.0)
    assert settings.learning_rate == rates_for(pocket.d_model)["learning_rate"]
    assert settings.decay_steps is not None
    assert settings.steps // 2 < settings.decay_steps < settings.steps


def test_little_text_gets_a_few_passes_in_small_steps() -> None:
    little = TextSize("little", 285_000, 110_000, 70, 36_000, 2048, 2000)
    design = propose(little, replace(SLOW, minutes=5))
    assert design.text_ends
    assert design.epochs == pytest.approx(8, rel=0.02)
    assert design.settings.batch_size * design.model.context_length <= 512
    assert design.settings.dropout == 0


def test_too_little_text_and_too_much_memory_are_rejected() -> None:
    with pytest.raises(DataError, match="500 bytes to train on"):
        propose(replace(NEWS, bytes=500), SLOW)
    with pytest.raises(UsageError, match="1000 GB is more than NVIDIA T4 has"):
        budget_for(5, 10**12, gpu=GPUS["t4"])


def test_a_corpus_is_measured_by_reading_it(tmp_path: Path) -> None:
    text = "নদীর ধারে একটি গ্রাম ছিল। " * 200
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    found = measure_text(str(tmp_path))
    assert found.bytes == pytest.approx(0.95 * len(text.strip().encode()), rel=0.01)
    assert not found.prepared
    assert found.tokens_with(8192) == pytest.approx(0.95 * len(text) / 4.29, rel=0.01)
    (tmp_path / "empty").mkdir()
    with pytest.raises(KothaError, match="no supported files found"):
        measure_text(str(tmp_path / "empty"))


def test_little_text_gets_a_small_vocabulary() -> None:
    assert [choose_vocabulary(size) for size in (50_000, 2_000_000, 32_000_000, 10**9)] == [1024, 4096, 8192, 16_384]
    unprepared = replace(NEWS, tokens=None, vocab_size=None)
    assert propose(unprepared, SLOW).model.vocab_size == 8192
