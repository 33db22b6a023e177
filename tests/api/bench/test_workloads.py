"""Both implementations do the same work: equal losses, equal logits, equal ids."""

from typing import Any

import pytest
import torch

from kotha.api.bench import workloads
from kotha.errors import DataError, UsageError
from kotha.model.config import GPTConfig
from kotha.model.gpt import GPT
from kotha.model.presets import MODERN, preset
from kotha.text.tokenizer.trainers import train
from kotha.training.device import choose_arithmetic

pytest.importorskip("transformers", reason="the other side is transformers")

SIZES: dict[str, Any] = {"vocab_size": 61, "context_length": 24, "n_layers": 2, "d_model": 32, "n_heads": 2, "d_ff": 64}
CLASSIC = GPTConfig(**SIZES, activation="gelu-tanh")
UNTIED = GPTConfig(**SIZES, tied_head=False)
MODELS = {"gpt-2": CLASSIC, "gpt-2, untied": UNTIED, "qwen3": GPTConfig(**SIZES, **MODERN)}
FLOAT32 = choose_arithmetic("float32", "cpu")
TEXTS = ["নদীর ধারে একটি গ্রাম।", "<|endoftext|> মা ও ছেলে, ১২৩", "নদীর ধারে  মা", ""]


def quiet(stage: str, done: int, total: int) -> None:
    pass


def written(rows: list[list[int]], batch_size: int, n_tokens: int) -> bool:
    return [len(row) for row in rows] == [n_tokens] * batch_size


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_both_have_the_same_training_losses(model: GPTConfig) -> None:
    settings = workloads.constant_settings(3, FLOAT32)
    ours, theirs = (make(model, settings, FLOAT32) for make in (workloads.our_step, workloads.their_step))
    losses = [(float(ours()), float(theirs())) for _ in range(4)]
    assert all(mine == pytest.approx(other, abs=1e-4) for mine, other in losses), losses
    assert len({round(mine, 6) for mine, _ in losses}) == 4, "each step has different tokens"


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_the_twin_gives_the_same_logits(model: GPTConfig) -> None:
    ours = GPT(model).eval()
    ids = workloads.prompts(ours, 2)
    with torch.no_grad():
        assert torch.allclose(ours(ids), workloads.twin(ours)(ids).logits, atol=1e-5)


def test_both_generate_the_same_number_of_tokens_per_row() -> None:
    model = GPT(CLASSIC).eval()
    assert written(workloads.our_writer(model, "float32", 2, 5)(), 2, 5)
    assert written(workloads.their_writer(model, "float32", 2, 5)(), 2, 5)
    assert written(workloads.our_writer(model, "int8", 1, 8)(), 1, 8)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_both_give_the_same_ids(kind: str) -> None:
    tokenizer = train(TEXTS, kind, vocab_size=400)
    ours, theirs = (make(tokenizer, TEXTS) for make in (workloads.our_encoder, workloads.their_encoder))
    assert ours() == theirs() == ours(), "also when repeated"


def test_training_reports_measured_and_predicted_time() -> None:
    outcome = workloads.bench_training(CLASSIC, 2, "float32", 2, quiet, "cpu")
    assert list(outcome.implementations()) == ["kotha", "transformers"]
    assert outcome.amount == 2 * CLASSIC.context_length
    assert outcome.figures.keys() >= {"peak_share", "seconds_per_step", "predicted_seconds_per_step"}
    assert "predicts" in str(outcome.remarks[-1])


def test_a_model_without_a_transformers_layout_is_measured_alone() -> None:
    outcome = workloads.bench_writing(GPT(CLASSIC.replace(norm_order="post")), None, "float32", 1, 4, 1, quiet)
    assert list(outcome.implementations()) == ["kotha"]
    assert "transformers was not measured: no Hugging Face architecture fits" in str(outcome.remarks[0])


def test_invalid_benchmark_arguments_are_rejected() -> None:
    model = GPT(CLASSIC)
    with pytest.raises(UsageError, match="needs a GPT, not a bert"):
        workloads.gpt_only(preset("pocket-bert"))
    with pytest.raises(UsageError, match="batch_size=0 is out of range; use 1 to 1,024"):
        workloads.bench_training(CLASSIC, 0, "float32", 1, quiet)
    with pytest.raises(UsageError, match="batch_size=2000 is out of range"):
        workloads.bench_writing(model, None, "float32", 2000, 4, 1, quiet)
    with pytest.raises(UsageError, match="tokens=9 is out of range; use 1 to 8"):
        workloads.bench_writing(model, None, "float32", 1, 9, 1, quiet)
    with pytest.raises(
        UsageError, match=r"context of 8 tokens is too short for a prompt of .*; use a model with a longer context"
    ):
        workloads.bench_writing(GPT(CLASSIC.replace(context_length=8)), None, "float32", 1, 1, 1, quiet)
    with pytest.raises(DataError, match="no text to measure on"):
        workloads.bench_tokenizing([""], train(TEXTS, "bpe", vocab_size=400), 1, quiet)
