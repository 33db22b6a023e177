"""ONNX graphs in onnxruntime: the logits of every family, with and without a cache, for any batch size and length."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path

import pytest
import torch
from tests.export.models import CONFIGS, shaken

from kotha.artifacts.model_folder import Bundle
from kotha.errors import KothaError
from kotha.export.onnx import export as onnx_export
from kotha.export.onnx.export import DESCRIPTION, Session
from kotha.export.onnx.graphs import empty_past, past_names
from kotha.export.parity import built_in_lines, our_side
from kotha.export.targets import export
from kotha.model.attention import Attention
from kotha.model.config import BERTConfig, GPTConfig, ModelConfig, Seq2SeqConfig, ViTConfig
from kotha.model.family import Model, build
from kotha.model.gpt import GPT
from kotha.model.presets import MODERN
from kotha.model.pruning import remove_heads
from kotha.text.stories.corpus import stories
from kotha.text.tokenizer.chat import ChatTemplate
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.trainers import train

pytest.importorskip("onnx", reason="writing ONNX needs the onnx library")
pytest.importorskip("onnxscript", reason="torch writes ONNX through onnxscript")
pytest.importorskip("onnxruntime", reason="the graphs are run by onnxruntime")

SIZE = {"n_layers": 1, "d_model": 32, "n_heads": 4, "d_ff": 48}
TEXT = {**SIZE, "vocab_size": 600, "context_length": 128}


@cache
def tokenizer() -> Tokenizer:
    return train([story.text for story in islice(stories(seed=0), 60)], "unigram", vocab_size=600)


def filled(config: ModelConfig) -> Model:
    """A model with weights large enough that rounding does not change its best token."""
    torch.manual_seed(0)
    model = build(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return model


@pytest.fixture(scope="module")
def modern(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[GPT, Path]]:
    out = tmp_path_factory.mktemp("onnx") / "modern"
    model = filled(GPTConfig(**TEXT, **MODERN, n_kv_heads=2))
    assert isinstance(model, GPT)
    report = export(Bundle(model, tokenizer()), "onnx", out)
    assert report.passed and report.checked, report.failures
    assert report.max_logit_difference is not None and report.max_logit_difference <= 1e-4
    yield model, out


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(("past", "new"), [(0, 1), (0, 128), (1, 1), (7, 4), (127, 1)])
def test_any_batch_length_and_past(modern: tuple[GPT, Path], batch: int, past: int, new: int) -> None:
    model, out = modern
    session = Session(out / "model.onnx")
    ids = torch.randint(600, (batch, past + new), generator=torch.Generator().manual_seed(past))
    cache_in = dict(zip(past_names(1), empty_past(model.stack.blocks, batch), strict=True))
    if past:
        read = session(ids=ids[:, :past], **cache_in)
        cache_in = {name.replace("present", "past"): value for name, value in read.items() if name != "logits"}
    found = session(ids=ids[:, past:], **cache_in)
    with torch.inference_mode():
        expected = model(ids)[:, past:]
    torch.testing.assert_close(found["logits"], expected, atol=1e-4, rtol=0)
    assert found["present.0.key"].shape == (batch, 2, past + new, 8)


def test_the_description_lists_inputs_and_outputs(modern: tuple[GPT, Path]) -> None:
    model, out = modern
    assert sorted(path.name for path in out.iterdir()) == ["model.onnx", DESCRIPTION, "tokenizer.json"]
    result = json.loads((out / DESCRIPTION).read_text(encoding="utf-8"))
    graph = result["graphs"]["model.onnx"]
    assert graph["inputs"]["ids"] == {"0": "batch", "1": "length"}
    assert graph["inputs"]["past.0.value"] == {"0": "batch", "2": "past"}
    assert list(graph["outputs"])[:2] == ["logits", "present.0.key"]
    assert result["tokenizer"] == tokenizer().fingerprint and result["model"] == model.config.to_dict()
    assert str(Path(onnx_export.__file__).parent).encode() not in (out / "model.onnx").read_bytes()


def test_the_model_is_not_changed(modern: tuple[GPT, Path]) -> None:
    model, _ = modern
    assert {part.implementation for part in model.modules() if isinstance(part, Attention)} == {"fused"}


def test_parity_detects_other_weights(modern: tuple[GPT, Path]) -> None:
    model, out = modern
    changed = build(model.config).eval()
    changed.load_state_dict(model.state_dict())
    with torch.no_grad():
        changed.get_parameter("stack.blocks.0.attention.key.weight").add_(0.05)
    report = onnx_export.check_graphs(changed, tokenizer(), out, built_in_lines(40))
    assert not report.passed and "logits differ by" in str(report.failures[0])


FAMILIES: dict[str, ModelConfig] = {
    "classic": GPTConfig(**TEXT, attention_bias=False, tied_head=False),
    "bert": BERTConfig(**TEXT),
    "seq2seq": Seq2SeqConfig(**{**TEXT, "n_layers": 2}),
    "vit": ViTConfig(**SIZE, image_size=8, patch_size=4, n_channels=1, n_classes=5),
}


# The exporter takes seconds per graph, so two GPTs are always tested, and the others only in the slow tests.
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "classic" else pytest.mark.slow) for name in FAMILIES]
)
def test_every_family(tmp_path: Path, name: str) -> None:
    report = export(Bundle(filled(FAMILIES[name]), None if name == "vit" else tokenizer()), "onnx", tmp_path / "out")
    assert report.passed and report.checked, report.failures
    assert report.max_logit_difference is not None and report.max_logit_difference <= 1e-4
    assert report.positions > 0 and report.best_equal == 1.0
    graphs = {path.name for path in (tmp_path / "out").glob("*.onnx")}
    assert graphs == ({"encoder.onnx", "decoder.onnx"} if name == "seq2seq" else {"model.onnx"})


@pytest.mark.parametrize(
    ("description", "message"), [("{}", "exists"), ('{"format": "kotha-onnx"}', "contains mine.txt")]
)
def test_a_folder_with_other_files_is_not_replaced(tmp_path: Path, description: str, message: str) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "onnx.json").write_text(description)
    with pytest.raises(KothaError, match=message):
        export(Bundle(filled(FAMILIES["vit"]), None), "onnx", tmp_path, overwrite=True)
    assert (tmp_path / "mine.txt").exists()


def test_a_failed_export_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch.onnx, "export", full)
    with pytest.raises(KothaError, match="No space left on device; no partial output was left"):
        export(Bundle(filled(FAMILIES["vit"]), None), "onnx", tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_without_the_libraries_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(KothaError, match=r"an export to onnx needs onnx, onnxscript; install it with: .*pip install"):
        export(Bundle(filled(FAMILIES["vit"]), None), "onnx", tmp_path / "out")


def test_narrow_weights_are_widened_and_the_model_is_not_changed(tmp_path: Path) -> None:
    bundle = Bundle(filled(FAMILIES["vit"]).bfloat16(), None)
    report = export(bundle, "onnx", tmp_path / "out")
    assert report.passed and report.weights == "float32" and not report.remarks, report.failures
    assert {weight.dtype for weight in bundle.model.parameters()} == {torch.bfloat16}


def test_a_pruned_model_has_only_the_remaining_key_heads(tmp_path: Path) -> None:
    whole = filled(GPTConfig(**{**TEXT, "n_layers": 2, "context_length": 24}, n_kv_heads=2))
    pruned = remove_heads(whole, ["blocks.0.attention.0", "blocks.0.attention.1", "blocks.1.attention.3"])
    report = export(Bundle(pruned, None), "onnx", tmp_path / "pruned")
    assert report.checked and report.passed, report.failures
    past = empty_past(pruned.stack.blocks, batch=3, length=2)  # type: ignore[union-attr]
    assert [tuple(each.shape) for each in past] == [(3, 1, 2, 8)] * 2 + [(3, 2, 2, 8)] * 2


def test_the_description_includes_the_chat_template() -> None:
    bundle = shaken(CONFIGS["qwen3"])
    assert bundle.tokenizer is not None
    taught = replace(bundle, chat=ChatTemplate.of(bundle.tokenizer))
    assert taught.chat is not None and onnx_export._describe(taught, [])["chat_template"] == taught.chat.jinja()
    assert our_side(taught).chat == taught.chat and "chat_template" not in onnx_export._describe(bundle, [])
