"""`kotha plan --gpus` as a user types it."""

import json

import pytest

from kotha.cli.main import main


def test_a_cluster_plan_lists_its_assumptions(capsys) -> None:
    assert main(["plan", "--gpus", "64", "--nodes", "8"]) == 0
    output = capsys.readouterr().out
    for said in (
        "64 x NVIDIA H200 in 8 machines: performance",
        "requirements",
        "124 million",
        "6.78 billion",
        "for 1,000 billion tokens",
        "disk space: tokens and three checkpoints",
        "assumptions",
        "41% of 989 TFLOP/s",
        "400 Gb/s per GPU",
        "as reported for Llama 3 (arXiv 2407.21783)",
        "compared with published runs, the speeds are",
    ):
        assert said in output


def test_a_preset_and_a_number_of_tokens_as_json(capsys) -> None:
    arguments = ["plan", "--gpus", "16", "--preset", "gpt2", "--tokens", "5B", "250M", "--gpu", "a100", "--json"]
    assert main(arguments) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["gpus"], found["nodes"], found["gpu"]) == (16, 2, "NVIDIA A100 80 GB")
    (model,) = found["models"]
    assert model["parameters"] == 124_439_808
    assert [run["tokens"] for run in model["runs"]] == [5e9, 2.5e8]
    slow, quick = model["runs"]
    assert slow["days"] == pytest.approx(20 * quick["days"])
    assert slow["gpu_hours"] == pytest.approx(24 * 16 * slow["days"])
    assert slow["disk_bytes"] == 2 * 5e9 + 3 * model["checkpoint_bytes"]
    assert {each["what"] for each in found["assumed"]} >= {"speed of a GPU", "between machines", "failures", "storage"}
    assert main([*arguments, "--network", "1", "--storage", "0.1"]) == 0
    slower = json.loads(capsys.readouterr().out)["models"][0]
    assert slower["tokens_per_second"] < model["tokens_per_second"]
    assert slower["checkpoint_seconds"] == pytest.approx(20 * model["checkpoint_seconds"])
    assert main([*arguments, "--set", "batch_size=32", "context_length=512"]) == 0
    assert json.loads(capsys.readouterr().out)["models"][0]["tokens_per_step"] == 32 * 512


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["--nodes", "2"], 2, "set the number of GPUs with --gpus"),
        (["--gpus", "0"], 2, "--gpus 0 must be from 1"),
        (["--gpus", "12", "--nodes", "5"], 2, "12 GPUs cannot be divided evenly with --nodes 5"),
        (["--gpus", "8", "--tokens", "many"], 2, "--tokens many is not a number of tokens; write 10B"),
        (["--gpus", "8", "--tokens", "nanB"], 2, "must be from 1 to 1e18"),
        (["--gpus", "8", "--minutes", "5"], 2, "--minutes does not apply to a cluster plan"),
        (["--gpus", "8", "--preset", "bert-base"], 2, "bert-base is a bert"),
        (["--gpus", "8", "--gpu", "t4"], 1, "do not have enough memory for"),
        (["--gpus", "8", "--network", "0"], 2, "network must be above 0"),
        (["--gpus", "8", "--gpu", "h20"], 2, "did you mean 'h200'?"),
        (["--gpus", "8", "--set", "batch_size=4"], 1, "a batch of 4 sequences cannot be divided evenly among 8 GPUs"),
    ],
)
def test_invalid_plans_are_rejected(capsys, arguments: list[str], code: int, reason: str) -> None:
    assert main(["plan", *arguments]) == code
    output = capsys.readouterr().err
    assert reason in output and output.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nodes", "7"], "64টি GPU `--nodes 7` দিয়ে সমান ভাগ হয় না"),
        (["--tokens", "lots"], "`--tokens lots` টোকেনের সংখ্যা নয়"),
        (["--set", "width=4"], "“width” নামে কোনো সেটিং নেই"),
    ],
)
def test_invalid_plans_are_rejected_in_bangla(capsys, arguments: list[str], message: str) -> None:
    assert main(["plan", "--gpus", "64", *arguments, "--language", "bn"]) != 0
    assert message in capsys.readouterr().err


def test_an_unknown_setting_lists_settings_and_sizes(capsys) -> None:
    assert main(["plan", "--gpus", "64", "--set", "width=4"]) == 1
    known = capsys.readouterr().err.partition("known: ")[2].strip().split(", ")
    assert {"d_model", "n_layers", "learning_rate"} < {*known} and len(known) == len({*known})


def test_output_in_bangla(capsys) -> None:
    assert main(["plan", "--gpus", "8", "--preset", "gpt2", "--language", "bn"]) == 0
    output = capsys.readouterr().out
    for said in ("যা ধরে নেওয়া হয়েছে", "প্রতি সেকেন্ডে টোকেন", "১,০০,০০০ কোটি টোকেনে", "লাগবে না", "১টি কম্পিউটারে"):
        assert said in output
    for english in ("assumed", "measured on", "messages", "storage", "a machine", "minutes", "hours", "seconds"):
        assert english not in output
