"""Plans with several stages: more time allows more models, and all of them fit into the time budget."""

from dataclasses import replace

import pytest
from tests.training.plan.test_design import NEWS, SLOW

from kotha.training.plan.design import Budget, budget_for, propose
from kotha.training.plan.stages import plan_stages
from kotha.training.plan.step_time import GPUS


def stages_for(minutes: float, quality="best", fixed=None, budget: Budget | None = None):
    budget = budget or budget_for(minutes, gpu=GPUS["h200"])
    return plan_stages(NEWS, budget, propose(NEWS, budget, fixed), fixed or {}, quality)


@pytest.mark.parametrize(("minutes", "count"), [(0.9, 0), (2.5, 1), (5, 3), (10, 4), (30, 5)])
def test_more_time_gives_more_stages(minutes: float, count: int) -> None:
    stages = stages_for(minutes)
    assert len(stages) == count
    if stages:
        *teachers, last = stages
        assert sum(stage.seconds for stage in stages) <= 60 * minutes
        assert last.settings.teachers == tuple(f"teachers/{number}" for number in range(1, count))
        assert len({stage.settings.seed for stage in stages}) == count
        assert {stage.settings.context_length for stage in stages} == {last.settings.context_length}
        assert all(stage.settings.steps <= stage.most_steps for stage in stages)
        assert not any(stage.settings.teachers for stage in teachers)
        assert {stage.settings.evaluate_tokens for stage in stages} == {last.settings.evaluate_tokens}


def test_the_quality_limits_the_stages() -> None:
    assert stages_for(30, "quick") == ()
    (only,) = stages_for(30, "standard")
    assert only.model.d_model > propose(NEWS, budget_for(30, gpu=GPUS["h200"])).model.d_model


def test_settings_of_the_user_hold_in_every_stage() -> None:
    assert {stage.settings.weight_decay for stage in stages_for(10, fixed={"weight_decay": 0.3})} == {0.3}


def test_a_slow_machine_has_no_time_for_stages() -> None:
    assert stages_for(30, budget=SLOW) == ()


def test_a_wide_model_that_does_not_fit_in_memory_is_replaced() -> None:
    budget = replace(budget_for(10, gpu=GPUS["h200"]), memory_bytes=2_000_000_000)
    stages = stages_for(10, budget=budget)
    assert stages
    assert all(stage.model.d_model <= 640 for stage in stages)
