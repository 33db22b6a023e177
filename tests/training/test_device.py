"""The measured speed, the memory and the machine's description, compared with the system's values."""

from pathlib import Path

import pytest
import torch

from kotha.model.config import BERTConfig, GPTConfig, ModelConfig, Seq2SeqConfig, ViTConfig
from kotha.model.presets import PRESETS
from kotha.training import device as machine
from kotha.training import device as precision
from kotha.training.config import TrainConfig
from kotha.training.device import Arithmetic, choose_arithmetic
from kotha.training.plan.render import TrainingPlan, plan_training
from kotha.training.plan.step_time import predict_seconds_per_step

CPU = torch.device("cpu")
TEXT = {"vocab_size": 40, "context_length": 20, "n_layers": 2, "d_model": 32, "n_heads": 4}
FAMILY: dict[str, ModelConfig] = {
    "gpt": GPTConfig(**TEXT),
    "grouped": PRESETS["pocket"].replace(**TEXT, n_kv_heads=2, d_ff=48),
    "bert": BERTConfig(**TEXT),
    "seq2seq": Seq2SeqConfig(**{**TEXT, "n_decoder_layers": 3}),
    "vit": ViTConfig(image_size=28, patch_size=7, n_channels=1, n_classes=10, n_layers=2, d_model=32, n_heads=4),
}


def test_speed_is_measured_once() -> None:
    assert machine.peak_flops_per_second(CPU, torch.float32) > 0
    assert machine.peak_flops_per_second(CPU, torch.float32) == machine.peak_flops_per_second(CPU, torch.float32)


def test_a_busy_machine_has_no_share_above_one(monkeypatch) -> None:
    plan = plan_training(FAMILY["gpt"], TrainConfig(batch_size=4, steps=3), "cpu", pace=1e-9)
    assert plan["peak_share"] is None
    assert "this machine is busy" in str(TrainingPlan(plan, TrainConfig()).sentences()[-2])
    usual = TrainingPlan(plan_training(FAMILY["gpt"], TrainConfig(batch_size=4), "cpu", pace=1e3), TrainConfig())
    assert "% of the peak of" in str(usual.sentences()[-2])
    taken = iter([10.0, 1e-3])  # seconds: the small product was slowed down by other load, the large one was not
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
def test_predicting_time_does_not_change_the_random_state(name: str) -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    arithmetic = Arithmetic(CPU, "float32", "as requested")
    seconds = predict_seconds_per_step(FAMILY[name], TrainConfig(batch_size=4), 2, 20, arithmetic)
    assert seconds > 0
    assert torch.equal(torch.get_rng_state(), before)


def test_an_absent_gpu_has_memory_but_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    found = plan_training(FAMILY["gpt"], TrainConfig(), "cuda")
    assert found["memory_bytes"]["base"] == 0
    assert (found["precision"], found["compiled"], found["seconds_per_step"]) == ("bfloat16", True, None)
