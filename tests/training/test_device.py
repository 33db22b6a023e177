"""Work against torch's own counter; memory and description against what the system says."""

from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from kotha.model.attention import set_reading
from kotha.model.config import BERTConfig, GPTConfig, ModelConfig, Seq2SeqConfig, ViTConfig
from kotha.model.family import build
from kotha.model.presets import PRESETS, preset
from kotha.training import device as machine
from kotha.training import device as precision
from kotha.training import execution as fitting_module
from kotha.training.config import TrainConfig
from kotha.training.device import Arithmetic, choose_arithmetic
from kotha.training.distributed import ALONE
from kotha.training.execution import Fitting
from kotha.training.plan.memory import how_planned, positions
from kotha.training.plan.render import TrainingPlan, plan_training
from kotha.training.plan.step_time import count_work, example_inputs, predict_seconds_per_step

CPU = torch.device("cpu")
TEXT = {"vocab_size": 40, "context_length": 20, "n_layers": 2, "d_model": 32, "n_heads": 4}
FAMILY: dict[str, ModelConfig] = {
    "gpt": GPTConfig(**TEXT),
    "grouped": PRESETS["pocket"].replace(**TEXT, n_kv_heads=2, d_ff=48),
    "bert": BERTConfig(**TEXT),
    "seq2seq": Seq2SeqConfig(**{**TEXT, "n_decoder_layers": 3}),
    "vit": ViTConfig(image_size=28, patch_size=7, n_channels=1, n_classes=10, n_layers=2, d_model=32, n_heads=4),
}


@pytest.mark.parametrize("name", FAMILY)
def test_work_is_what_torch_counts(name: str) -> None:
    config, batch_size = FAMILY[name], 3
    model = build(config)
    set_reading(model, "explicit")  # a fused kernel's backward pass computes the scores again, which is counted too
    inputs = example_inputs(config, batch_size, 20)
    with FlopCounterMode(display=False) as counter:
        hidden = model.hidden(*inputs)
        if name == "bert":
            answers = [model.head(model.guess(hidden[:, :3])), model.pair_head(model.pool(hidden))]
        else:
            answers = [model.head(hidden[:, 0] if name == "vit" else hidden)]
        torch.stack([each.sum() for each in answers]).sum().backward()
    tokens = batch_size * positions(config, 20) * (2 if name == "seq2seq" else 1)
    assert count_work(config, 20).training_per_token * tokens == pytest.approx(counter.get_total_flops(), rel=1e-6)


def test_the_work_of_the_course_model_by_hand() -> None:
    matrices = 8 * 12 * 512 * 512 + 512 * 32_100
    assert count_work(preset("bangla-58m"), 128).training_per_token == 6 * matrices + 12 * 8 * 512 * 128


def test_speed_is_measured_once() -> None:
    assert machine.peak_flops_per_second(CPU, torch.float32) > 0
    assert machine.peak_flops_per_second(CPU, torch.float32) == machine.peak_flops_per_second(CPU, torch.float32)


def test_a_busy_machine_has_no_share_above_all_of_it(monkeypatch) -> None:
    plan = plan_training(FAMILY["gpt"], TrainConfig(batch_size=4, steps=3), "cpu", pace=1e-9)
    assert plan["peak_share"] is None
    assert "this machine is busy" in str(TrainingPlan(plan, TrainConfig()).sentences()[-2])
    usual = TrainingPlan(plan_training(FAMILY["gpt"], TrainConfig(batch_size=4), "cpu", pace=1e3), TrainConfig())
    assert "% of the peak, which is" in str(usual.sentences()[-2])
    taken = iter([10.0, 1e-3])  # seconds: the small product was disturbed, the large one was not
    monkeypatch.setattr(machine, "quickest", lambda *_: next(taken))
    assert machine.peak_flops_per_second.__wrapped__(CPU, torch.float32) == 2 * 1024**3 / 1e-3
    monkeypatch.setattr(precision, "_gain_of_bfloat16", lambda: 1 / 228.6)
    assert str(choose_arithmetic("auto", "cpu").reason) == "bfloat16 takes about 200 times as long here"


def test_memory_of_this_process() -> None:
    assert 0 < machine.available_memory(CPU) <= machine.total_memory()
    assert 50 << 20 < machine.peak_memory(CPU) < machine.total_memory()


def test_limits_of_containers(tmp_path: Path) -> None:
    assert machine._cgroup_rooms(tmp_path) == []
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("300\n")
    assert machine._cgroup_rooms(tmp_path) == []
    (tmp_path / "memory.max").write_text("1000\n")
    assert machine._cgroup_rooms(tmp_path) == [700]
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("500\n")
    (tmp_path / "memory" / "memory.usage_in_bytes").write_text("600\n")
    assert machine._cgroup_rooms(tmp_path) == [700, 0]


def test_the_machine_is_described() -> None:
    found = machine.describe_machine(CPU)
    assert found["cores"] >= 1
    assert found["processor"]
    assert (found["torch"], found["device"]) == (torch.__version__, "cpu")


@pytest.mark.parametrize("name", FAMILY)
def test_time_is_predicted_and_draws_no_numbers(name: str) -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    arithmetic = Arithmetic(CPU, "float32", "as asked")
    seconds = predict_seconds_per_step(FAMILY[name], TrainConfig(batch_size=4), 2, 20, arithmetic)
    assert seconds > 0
    assert torch.equal(torch.get_rng_state(), before)


def test_a_gpu_that_is_not_here_has_memory_but_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    found = plan_training(FAMILY["gpt"], TrainConfig(), "cuda")
    assert found["memory_bytes"]["base"] == 0
    assert (found["precision"], found["compiled"], found["seconds_per_step"]) == ("bfloat16", True, None)


def test_a_plan_counts_what_the_process_already_has(monkeypatch: pytest.MonkeyPatch) -> None:
    # What this process has had at most depends on the tests before this one, and would hide what it has now.
    monkeypatch.setattr(fitting_module, "peak_memory", lambda device: 0)
    arithmetic = Arithmetic(CPU, "float32", "as asked")
    config = TrainConfig(batch_size=2)
    how = how_planned(FAMILY["gpt"], config, arithmetic)
    fitting = Fitting(build(FAMILY["gpt"]), config, arithmetic, ALONE, how)
    before, ballast = fitting.plan().total, torch.ones(150 << 20)  # 600 MiB, as a tokenizer's training may leave
    assert fitting.plan().total > max(before + ballast.nbytes // 2, ballast.nbytes + (100 << 20))
