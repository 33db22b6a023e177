"""Export of classifiers to Hugging Face and re-import: the same logits and labels."""

from pathlib import Path
from typing import Any

import pytest
import torch

from kotha.artifacts.model_folder import Bundle
from kotha.export.huggingface.import_ import import_hf
from kotha.export.targets import export, supported_targets
from kotha.generation.classify import Classifier
from kotha.model.config import GPTConfig, ModelConfig, classifying
from kotha.model.family import build
from kotha.model.presets import MODERN, preset
from kotha.text.tokenizer.trainers import train as train_tokenizer

transformers = pytest.importorskip("transformers", reason="transformers is what the folder is opened with")

LABELS = ("ভালো", "মন্দ", "মাঝারি")
SMALL: dict[str, Any] = {"n_layers": 1, "d_model": 16, "n_heads": 2, "d_ff": 32, "context_length": 16}
TEXTS = ["আজ নদী চমৎকার", "আমি তোমায় ভালোবাসি, তুমি?", "কান্না"]
CASES: dict[str, tuple[ModelConfig, str]] = {
    "GPT2ForSequenceClassification": (
        GPTConfig(**SMALL, vocab_size=500, activation="gelu-tanh", tied_head=False, head_bias=True),
        "unigram",
    ),
    "Qwen3ForSequenceClassification": (GPTConfig(**SMALL, vocab_size=500, **MODERN), "unigram"),
    "LlamaForSequenceClassification": (GPTConfig(**SMALL, vocab_size=500, **{**MODERN, "qk_norm": False}), "unigram"),
    "BertForSequenceClassification": (preset("pocket-bert").replace(**SMALL, vocab_size=300), "wordpiece"),
}


def made(architecture: str) -> Bundle:
    config, kind = CASES[architecture]
    torch.manual_seed(0)
    tokenizer = train_tokenizer(["আজ নদী চমৎকার আমি তোমায় ভালোবাসি কান্না হাসি"] * 3, kind, config.vocab_size)  # type: ignore[attr-defined]
    model = build(classifying(config.replace(vocab_size=tokenizer.vocab_size), LABELS)).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # far enough from the initial values to reveal a mistake
            parameter.add_(0.2 * torch.randn_like(parameter))
    return Bundle(model, tokenizer)


@pytest.mark.parametrize("architecture", CASES)
def test_classifier_logits_equal_those_of_transformers(architecture: str, tmp_path: Path) -> None:
    bundle = made(architecture)
    report = export(bundle, "hf", tmp_path / "out")
    assert report.passed and report.architecture == architecture, report
    assert report.max_logit_difference < 1e-5
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "out").eval()
    assert theirs.config.id2label == dict(enumerate(LABELS))
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    given = tokenizer(TEXTS, return_tensors="pt", padding=True, truncation=True, max_length=16)
    with torch.no_grad():
        found = theirs(input_ids=given["input_ids"], attention_mask=given["attention_mask"]).logits.softmax(-1)
    torch.testing.assert_close(found, Classifier(bundle).probabilities(TEXTS), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("architecture", CASES)
def test_a_classifier_round_trips_bit_for_bit_with_its_labels(architecture: str, tmp_path: Path) -> None:
    bundle = made(architecture)
    export(bundle, "hf", tmp_path / "out")
    again = import_hf(tmp_path / "out").bundle
    assert again.config == bundle.config and again.config.labels == LABELS  # type: ignore[attr-defined]
    ours, others = bundle.model.state_dict(), again.model.state_dict()
    assert all(torch.equal(ours[name], others[name]) for name in ours)
    assert torch.equal(Classifier(again).probabilities(TEXTS), Classifier(bundle).probabilities(TEXTS))


def test_other_formats_refer_classifiers_to_hf() -> None:
    found = {
        target.name: target
        for target in supported_targets(classifying(CASES["Qwen3ForSequenceClassification"][0], LABELS))
    }
    assert found["hf"].supported and "Qwen3ForSequenceClassification" in str(found["hf"].details)
    assert not found["gguf"].supported and str(found["gguf"].details) == "family='gpt-classifier'"
    assert not found["onnx"].supported
