"""From a request to settings, which are given or chosen from the amount of text and time."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.training.plan.test_design import NEWS, SLOW

from kotha.api.demo import Demonstration
from kotha.artifacts.model_folder import Bundle
from kotha.errors import ConfigError, UsageError
from kotha.model.config import GPTConfig
from kotha.model.family import build
from kotha.model.presets import preset
from kotha.training import request as module
from kotha.training.config import TrainConfig, recipe
from kotha.training.initial_weights import Origin
from kotha.training.request import USUAL_MINUTES, TrainRequest, choose_settings, take_sizes


@pytest.fixture(autouse=True)
def slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "budget_for", lambda minutes, *_: replace(SLOW, minutes=minutes))


def test_without_a_preset_text_and_time_determine_the_settings() -> None:
    short, long = (choose_settings(TrainRequest(minutes=minutes), NEWS) for minutes in (2, 200))
    assert short.design is not None
    assert long.design is not None
    assert short.design.parameters < long.design.parameters
    assert short.model.vocab_size == NEWS.vocab_size  # type: ignore[attr-defined]
    assert short.settings.learning_rate > long.settings.learning_rate
    assert (short.settings.dropout, short.settings.weight_decay) == (0.0, 0.1)
    for word in ("layers of", "steps of", "learning rates", "32 MB of text", "2 minutes"):
        assert word in str(short.sentence)


@pytest.mark.parametrize("minutes", [2, 30])
@pytest.mark.parametrize("name", [None, "pocket"])
def test_the_choice_fits_the_time(minutes: float, name: str | None) -> None:
    choice = choose_settings(TrainRequest(preset=name, minutes=minutes), NEWS)
    assert choice.seconds_per_step is not None
    assert 0 < choice.settings.steps * choice.seconds_per_step <= 60 * minutes


def test_given_settings_are_kept() -> None:
    given = {"batch_size": 16, "learning_rate": 1e-4, "seed": 5, "d_model": 64, "n_heads": 2}
    choice = choose_settings(TrainRequest(minutes=2, changes=given), NEWS)
    assert (choice.settings.batch_size, choice.settings.learning_rate, choice.settings.seed) == (16, 1e-4, 5)
    assert choice.model.d_model == 64
    course = choose_settings(TrainRequest(preset="pocket", recipe="course", minutes=2), NEWS)
    assert (course.settings.learning_rate, course.settings.batch_size) == (3e-4, 64)
    assert course.settings.warmup_steps <= course.settings.steps // 10


def test_steps_are_used_as_given() -> None:
    choice = choose_settings(TrainRequest(changes={"steps": 7}), NEWS)
    assert choice.settings == recipe("modern", steps=7, warmup_steps=0)
    assert (choice.model.n_layers, choice.sentence) == (preset("pocket").n_layers, "")


@pytest.mark.parametrize(
    ("name", "steps", "warmup"), [("modern", 60, 6), ("modern", 100, 50), ("course", 1500, 150), ("course", 4000, 1000)]
)
def test_a_warm_up_does_not_take_most_steps(name: str, steps: int, warmup: int) -> None:
    short = choose_settings(TrainRequest(recipe=name, changes={"steps": steps}), NEWS)
    assert short.settings == recipe(name, steps=steps, warmup_steps=warmup)
    choice = choose_settings(TrainRequest(recipe=name, changes={"steps": steps, "warmup_steps": steps}), NEWS)
    assert choice.settings.warmup_steps == steps, "an explicit recipe is used"


def test_an_empty_request_is_a_run_of_the_default_length() -> None:
    explicit, default = (
        choose_settings(TrainRequest(minutes=USUAL_MINUTES), NEWS),
        choose_settings(TrainRequest(), NEWS),
    )
    assert (explicit.model, explicit.settings) == (default.model, default.settings)


@pytest.mark.parametrize(
    ("request_", "wording"),
    [
        *(({"minutes": wrong}, "must be above 0") for wrong in (0, -1, math.nan, math.inf, 1e308, 10**400, "soon")),
        ({"minutes": 1, "changes": {"steps": 5}}, "minutes and steps both set the length"),
    ],
)
def test_contradictions_are_rejected(request_: dict[str, Any], wording: str) -> None:
    with pytest.raises(UsageError, match=wording):
        TrainRequest(**request_)
    with pytest.raises(UsageError, match="specify the data"):
        choose_settings(TrainRequest(minutes=1))


@pytest.mark.parametrize(
    ("name", "value", "wording"),
    [
        ("seed", -1, "must be an integer from 0 to 9,223,372,036,854,775,807"),
        ("seed", 1 << 63, "must be an integer from 0 to"),
        ("warmup_steps", -1, "must be an integer from 0 to"),
        ("learning_rate", math.inf, "must be a number"),
        ("gradient_clip", math.nan, "must be a number"),
        ("weight_decay", -1, "must be 0 or more"),
        ("batch_size", 10**6, "must be at most 65,536"),
        ("steps", 10**20, "must be an integer from 1 to"),
        ("n_layers", 1_000_000_000, "is too large; use 1 to 1,024"),
    ],
)
def test_invalid_numbers_are_rejected(name: str, value: float, wording: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}={value} {wording}"):
        choose_settings(TrainRequest(changes={"steps": 1, name: value}))


@pytest.mark.parametrize(
    ("make", "wording"),
    [
        (
            lambda: recipe("course", learning_rat=1),
            "unknown setting 'learning_rat'; did you mean 'learning_rate'",
        ),
        (lambda: recipe("moden"), "did you mean 'modern'"),
        (lambda: TrainConfig(schedule="cosin"), "schedule='cosin' is not a valid choice; did you mean 'cosine'"),
        (lambda: TrainConfig(steps="many"), "steps='many' must be an integer"),
        (lambda: take_sizes(preset("pocket"), {"n_layer": 3}), "unknown setting 'n_layer'; did you mean 'n_layers'"),
    ],
)
def test_misspelt_names_suggest_the_nearest(make: Callable[[], object], wording: str) -> None:
    with pytest.raises(ConfigError, match=wording):
        make()


def test_a_demo_rejects_bad_data_before_writing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="minutes=nan must be above 0"):
        Demonstration(tmp_path, 100, 1000, math.nan, 0)
    with pytest.raises(ConfigError, match="seed=-1 must be an integer from 0"):
        Demonstration(tmp_path, 100, 1000, 1.0, -1)


def test_sizes_are_separated_from_settings() -> None:
    model, rest = take_sizes(preset("pocket"), {"n_layers": 3, "steps": 5, "dropout": 0.1})
    assert model.n_layers == 3
    assert rest == {"steps": 5, "dropout": 0.1}


def test_a_new_model_has_the_training_context() -> None:
    request = TrainRequest(preset="pocket", changes={"context_length": 512, "steps": 1})
    chosen = choose_settings(request)
    assert isinstance(chosen.model, GPTConfig) and chosen.model.context_length == 512
    start = Origin("run", Bundle(build(preset("pocket").replace(vocab_size=20)), None))
    kept = choose_settings(TrainRequest(origin=start, changes={"context_length": 512, "steps": 1}))
    assert isinstance(kept.model, GPTConfig) and kept.model.context_length == 256, "a resumed one is unchanged"
