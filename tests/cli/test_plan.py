"""`kotha plan` as a user types it."""

import json

import pytest

from kotha.cli.main import main
from kotha.model.presets import PRESETS

PLAIN = ["--device", "cpu", "--set", "precision=float32"]


@pytest.mark.parametrize("name", ["mini", "bangla-58m", "bert-base", "vit-base-16", "transformer-base"])
def test_plan_counts_a_preset(capsys, name: str) -> None:
    assert main(["plan", "--preset", name, "--no-time", *PLAIN, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["config"] == PRESETS[name].to_dict()
    assert found["parameters"]["total"] > 0
    assert found["memory_bytes"]["total"] > 4 * found["parameters"]["total"]
    assert found["tokens_per_step"] > 0
    assert found["seconds_per_step"] is None
    assert main(["plan", "--preset", name, "--no-time", *PLAIN]) == 0
    assert f"{found['parameters']['total']:,}" in capsys.readouterr().out


def test_the_course_model_has_its_count(capsys) -> None:
    main(["plan", "--preset", "bangla-58m", "--no-time", *PLAIN, "--json"])
    assert json.loads(capsys.readouterr().out)["parameters"]["total"] == 58_139_648


def test_time_is_reported(capsys) -> None:
    assert main(["plan", "--preset", "mini", *PLAIN, "steps=10", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["seconds"] == pytest.approx(10 * found["seconds_per_step"])
    assert main(["plan", "--preset", "mini", *PLAIN]) == 0
    assert "s per step here" in capsys.readouterr().out


def test_settings_change_the_plan(capsys) -> None:
    sizes = ["vocab_size=500", "context_length=64", "batch_size=8", "micro_batch_size=2", "precision=bfloat16"]
    command = ["plan", "--preset", "pocket", "--recipe", "classic", "--no-time", "--device", "cuda", "--json"]
    assert main([*command, "--set", *sizes]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["config"]["vocab_size"] == 500
    assert (found["tokens_per_step"], found["micro_batch_size"], found["context_length"]) == (512, 2, 64)
    assert (found["device"], found["precision"], found["memory_bytes"]["average"]) == ("cuda", "bfloat16", 0)


@pytest.mark.parametrize(
    ("arguments", "wording"),
    [
        (["--preset", "bangla58m"], "did you mean 'bangla-58m'?"),
        (["--preset", "mini", "--recipe", "moden"], "did you mean 'modern'?"),
        (["--preset", "vit-digits", "--set", "vocab_size=5"], "vocab_size"),
    ],
)
def test_usage_errors(capsys, arguments: list[str], wording: str) -> None:
    assert main(["plan", "--no-time", *arguments]) == 1
    assert wording in capsys.readouterr().err


@pytest.mark.parametrize(
    ("sizes", "wording"),
    [
        (["d_model=1000000000", "n_heads=8"], "weights and gradients of one layer need 32,000,0"),
        (["d_ff=1000000000"], "is free, so no step can be timed; choose smaller sizes"),
        (["d_model=1073741824", "d_head=1073741824", "n_heads=4"], "are too large for any machine"),
    ],
)
def test_sizes_beyond_this_machine_are_rejected_at_once(capsys, sizes: list[str], wording: str) -> None:
    assert main(["plan", "--preset", "pocket", *PLAIN, "--set", *sizes]) == 1
    assert wording in capsys.readouterr().err
