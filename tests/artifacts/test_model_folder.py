"""Model folders: atomic writes, and validation of everything that is read."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kotha.artifacts import model_folder as bundle
from kotha.errors import ConfigError, KothaError
from kotha.model.config import GPTConfig, classifying
from kotha.model.family import build
from kotha.model.gpt import GPT
from kotha.model.presets import preset
from kotha.storage.weights import read_header, reading_weights
from kotha.text.tokenizer.chat import ChatTemplate
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.trainers import train

CONFIG = GPTConfig(d_model=8, n_heads=2, n_layers=1, vocab_size=40, context_length=6)
N_WEIGHTS = sum(weight.numel() for weight in GPT(CONFIG).parameters())
Header = dict[str, Any]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train(["আমার সোনার বাংলা, আমি তোমায় ভালোবাসি।"], "char", level="akshara")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    return bundle.save(tmp_path / "model", GPT(CONFIG))


def rewrite_header(folder: Path, change: Callable[[Header], object]) -> None:
    file = folder / bundle.WEIGHTS_FILE
    data = file.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    change(header)
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + size :])


def rewrite_config(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    file = folder / bundle.CONFIG_FILE
    values = json.loads(file.read_text(encoding="utf-8"))
    change(values)
    file.write_text(json.dumps(values), encoding="utf-8")


def refusal(folder: Path) -> str:
    with pytest.raises(KothaError) as error:
        bundle.load(folder)
    return str(error.value)


def test_a_model_with_its_tokenizer_is_saved_and_loaded(tokenizer: Tokenizer, tmp_path: Path) -> None:
    model = GPT(CONFIG.replace(vocab_size=tokenizer.vocab_size))
    folder = bundle.save(tmp_path / "model", model, tokenizer)
    assert sorted(file.name for file in folder.iterdir()) == ["config.json", "model.safetensors", "tokenizer.json"]
    back = bundle.load(folder)
    assert back.config == model.config
    assert back.tokenizer is not None
    assert back.tokenizer.fingerprint == tokenizer.fingerprint


def test_a_chat_template_is_loaded_and_checked_against_the_tokenizer(tokenizer: Tokenizer, tmp_path: Path) -> None:
    template = ChatTemplate.of(tokenizer)
    model = GPT(CONFIG.replace(vocab_size=tokenizer.vocab_size))
    folder = bundle.save(tmp_path / "model", model, tokenizer, chat=template)
    assert template is not None and bundle.load(folder).chat == template
    assert bundle.load(bundle.save(tmp_path / "plain", model, tokenizer)).chat is None
    config = (folder / "config.json").read_text()
    (folder / "config.json").write_text(config.replace("<|user|>", "<|human|>"))
    assert "does not match the special tokens of its tokenizer" in refusal(folder)
    (folder / "config.json").write_text(config.replace('"chat_template": {', '"chat_template": 5, "x": {'))
    assert "does not match the special tokens of its tokenizer" in refusal(folder)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_widening_is_exact(dtype: torch.dtype, tmp_path: Path) -> None:
    folder = bundle.save(tmp_path / "model", GPT(CONFIG).to(dtype))
    wide, narrow = bundle.load(folder).widened().model, bundle.load(folder).model
    assert wide.head.weight.dtype == torch.float32 and wide.head.weight is wide.tokens.weight
    assert all(torch.equal(one, two.float()) for one, two in zip(wide.parameters(), narrow.parameters(), strict=True))


def test_weights_have_the_permissions_of_their_folder(folder: Path) -> None:
    modes = {path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert modes == {folder.stat().st_mode & 0o666}


def test_a_loaded_model_does_not_change_with_its_file(folder: Path) -> None:
    model = bundle.load(folder).model
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    file = folder / "model.safetensors"
    with file.open("r+b") as opened:  # in place: the file keeps its inode
        opened.seek(-256, 2)
        opened.write(bytes(256))
    after = model.state_dict()
    assert all(torch.equal(weight, after[name]) for name, weight in before.items())


def test_a_tied_weight_is_stored_once(folder: Path) -> None:
    file = folder / bundle.WEIGHTS_FILE
    header = json.loads(file.read_bytes()[8:].split(b"}}", 1)[0] + b"}}")
    assert "tokens.weight" in header
    assert "head.weight" not in header
    model = bundle.load(folder).model
    assert isinstance(model, GPT)
    assert model.head.weight is model.tokens.weight


def test_a_vocabulary_larger_than_the_models_is_rejected(tokenizer: Tokenizer, tmp_path: Path) -> None:
    model = GPT(CONFIG.replace(vocab_size=5))
    with pytest.raises(
        KothaError, match=r"the tokenizer has .* tokens, but the model has vocab_size=5; train with vocab_size="
    ):
        bundle.save(tmp_path / "model", model, tokenizer)
    assert not list(tmp_path.iterdir())


def test_another_tokenizer_is_rejected(tokenizer: Tokenizer, tmp_path: Path) -> None:
    folder = bundle.save(tmp_path / "model", GPT(CONFIG.replace(vocab_size=tokenizer.vocab_size)), tokenizer)
    train(["অন্য লেখা"], "char", level="akshara").save(folder)
    assert "but the model was trained with" in refusal(folder)
    (folder / "tokenizer.json").unlink()
    assert "no tokenizer at" in refusal(folder)


def test_only_a_model_folder_is_replaced_and_only_with_overwrite(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(KothaError, match="exists"):
        bundle.save(folder, GPT(CONFIG))
    bundle.save(folder, GPT(CONFIG.replace(n_layers=2)), overwrite=True)
    assert bundle.load(folder).config.n_layers == 2
    (folder / "notes.md").write_text("hello", encoding="utf-8")
    with pytest.raises(KothaError, match=r"contains notes\.md, which is not part of the earlier output"):
        bundle.save(folder, GPT(CONFIG), overwrite=True)
    assert (folder / "notes.md").exists()
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("hello", encoding="utf-8")
    with pytest.raises(KothaError, match="exists"):
        bundle.save(tmp_path / "letters", GPT(CONFIG), overwrite=True)
    assert (tmp_path / "letters" / "dear.txt").read_text(encoding="utf-8") == "hello"


def test_a_failed_save_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bundle, "atomic_write", full)
    with pytest.raises(KothaError, match="No space left on device; no partial output was left"):
        bundle.save(tmp_path / "model", GPT(CONFIG))
    assert not list(tmp_path.iterdir())


def test_weights_of_several_types_are_rejected(tmp_path: Path) -> None:
    model = GPT(CONFIG)
    model.stack.half()
    with pytest.raises(KothaError, match="must all have the same type, one of float32, bfloat16"):
        bundle.save(tmp_path / "model", model)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h.pop("tokens.weight"), "tokens.weight has shape None, but its config requires [40, 8]"),
        (lambda h: h.update(extra=h["tokens.weight"]), "extra has shape [40, 8], but its config requires None"),
        (lambda h: h["tokens.weight"].update(shape=[1 << 62, 8]), "has shape [4611686018427387904, 8], but its config"),
        (
            lambda h: h["tokens.weight"].update(shape=[8, 40]),
            "tokens.weight has shape [8, 40], but its config requires [40, 8]",
        ),
        (lambda h: h["tokens.weight"].update(dtype="F64"), "tokens.weight has dtype F64, but its config requires F32"),
        (lambda h: h["tokens.weight"].pop("shape"), "tokens.weight has shape None"),
        (lambda h: h.update(extra=5), "its header is not a table of tensors"),
    ],
)
def test_a_header_that_differs_from_the_config_is_rejected(folder: Path, change: Any, message: str) -> None:
    rewrite_header(folder, change)
    assert message in refusal(folder)


@pytest.fixture
def whole_numbers(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    return bundle.save(tmp_path / "int8", GPT(CONFIG), stored="int8")


def test_int8_changes_a_weight_by_at_most_half_a_step(folder: Path, whole_numbers: Path) -> None:
    wide, back = (dict(bundle.load(each).model.named_parameters()) for each in (folder, whole_numbers))
    for name, weight in wide.items():
        step = weight.abs().amax(dim=-1, keepdim=True) / 127 if weight.ndim == 2 else torch.zeros(1)
        assert back[name].dtype == torch.float32
        assert ((back[name] - weight).abs() <= 0.501 * step).all(), name  # a scale has 11 significant bits
    assert bundle.stored_type(whole_numbers) == "int8"
    # One byte per number in a matrix, two per row, and four per number in a norm.
    matrices = [weight for weight in wide.values() if weight.ndim == 2]
    others = sum(weight.numel() for weight in wide.values() if weight.ndim != 2)
    expected = sum(weight.numel() + 2 * len(weight) for weight in matrices) + 4 * others
    assert read_header(whole_numbers / bundle.WEIGHTS_FILE)[1] == expected


def test_int8_weights_are_stored_again_unchanged(whole_numbers: Path, tmp_path: Path) -> None:
    again = bundle.save(tmp_path / "again", bundle.load(whole_numbers).model, stored="int8")
    assert (again / bundle.WEIGHTS_FILE).read_bytes() == (whole_numbers / bundle.WEIGHTS_FILE).read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h.pop("tokens.weight.scale"), "tokens.weight.scale has shape None, but its config requires [40]"),
        (lambda h: h["tokens.weight.scale"].update(shape=[8]), "has shape [8], but its config requires [40]"),
        (lambda h: h["tokens.weight.scale"].update(dtype="F32"), "scale has dtype F32, but its config requires F16"),
        (lambda h: h["tokens.weight"].update(dtype="F32"), "tokens.weight has dtype F32, but its config requires I8"),
    ],
)
def test_int8_weights_without_scales_are_rejected(whole_numbers: Path, change: Any, message: str) -> None:
    rewrite_header(whole_numbers, change)
    assert message in refusal(whole_numbers)


def test_a_scale_of_nan_is_rejected(whole_numbers: Path) -> None:
    file = whole_numbers / bundle.WEIGHTS_FILE
    weights = safetensors.torch.load_file(file)
    weights["tokens.weight.scale"][3] = torch.nan
    safetensors.torch.save_file(weights, file)
    with pytest.raises(KothaError, match=r"the weights contain NaN or infinity \(tokens\.weight\)"):
        bundle.load(whole_numbers)


def test_invalid_offsets_are_rejected(folder: Path) -> None:
    rewrite_header(folder, lambda header: header["tokens.weight"].update(data_offsets=[0, 8]))
    with pytest.raises(KothaError, match=r"model\.safetensors cannot be read"):
        bundle.load(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["model"].update(n_layers=1000), "its config has 1,000 layers, but there are only 20 tensors in"),
        (lambda c: c["model"].update(d_model=1 << 29, d_head=1 << 28), "but its config requires [40, 536870912]"),
        (lambda c: c["model"].update(n_head=2), "'n_head' is not a setting of GPTConfig; did you mean 'n_heads'?"),
        (lambda c: c["model"].update(d_head=None, n_heads=3), "d_model=8 is not divisible by n_heads=3; try"),
        (lambda c: c.update(format="other"), "does not describe a Kotha model"),
        (lambda c: c.update(format_version=2), "has format version 2; this version of Kotha reads 1"),
        (
            lambda c: c.update(dtype="int4"),
            "must contain a model, a tokenizer (a fingerprint or null) and a dtype (one of",
        ),
        (lambda c: c.update(model=[]), "must contain a model, a tokenizer (a fingerprint or null) and a dtype (one of"),
    ],
)
def test_a_config_that_differs_from_the_weights_is_rejected(folder: Path, change: Any, message: str) -> None:
    rewrite_config(folder, change)
    assert message in refusal(folder)


def test_a_mistake_in_a_config_names_its_file(folder: Path) -> None:
    rewrite_config(folder, lambda values: values["model"].update(dropout=2))
    with pytest.raises(ConfigError, match=r"config\.json: dropout=2 is out of range"):
        bundle.load(folder)


@pytest.mark.parametrize("name", [bundle.CONFIG_FILE, bundle.WEIGHTS_FILE])
def test_a_folder_with_a_missing_file_is_rejected(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert f"is not a model folder: it has no {name}" in refusal(folder)


@pytest.mark.parametrize("name", [bundle.CONFIG_FILE, bundle.WEIGHTS_FILE])
def test_a_file_truncated_anywhere_is_rejected(folder: Path, name: str) -> None:
    data = (folder / name).read_bytes()
    for end in sorted({0, 1, 7, 8, 9, 100, len(data) // 2, len(data) - 2}):
        (folder / name).write_bytes(data[:end])
        assert name in refusal(folder)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    where=st.integers(0, 1800),
    byte=st.integers(0, 255),
    name=st.sampled_from([bundle.CONFIG_FILE, bundle.WEIGHTS_FILE]),
)
def test_a_changed_byte_is_rejected_or_harmless(folder: Path, where: int, byte: int, name: str) -> None:
    file = folder / name
    data = file.read_bytes()
    broken = bytearray(data)
    broken[where % len(data)] = byte
    file.write_bytes(bytes(broken))
    try:
        loaded = bundle.load(folder)
    except KothaError as error:
        assert str(error), "the error has a message"
    else:
        assert sum(weight.numel() for weight in loaded.model.parameters()) == N_WEIGHTS
    finally:
        file.write_bytes(data)


@pytest.mark.parametrize("config", ['{"model_type": "gpt2"}', "[1, 2]", "not JSON"])
def test_only_a_folder_written_by_kotha_is_replaced(config: str, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / bundle.CONFIG_FILE).write_text(config, encoding="utf-8")
    (theirs / bundle.WEIGHTS_FILE).write_bytes(b"weights")
    with pytest.raises(KothaError, match="theirs exists"):
        bundle.save(theirs, GPT(CONFIG), overwrite=True)
    assert (theirs / bundle.WEIGHTS_FILE).read_bytes() == b"weights"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("broken", [float("nan"), float("inf"), float("-inf")])
def test_weights_of_nan_are_rejected(tmp_path: Path, dtype: torch.dtype, broken: float) -> None:
    model = GPT(CONFIG).to(dtype)
    with torch.no_grad():
        model.tokens.weight[3, 2] = broken
    folder = bundle.save(tmp_path / "model", model)
    with pytest.raises(KothaError, match=r"model\.safetensors: the weights contain NaN or infinity \(tokens\.weight\)"):
        bundle.load(folder)


def test_large_finite_weights_are_accepted(tmp_path: Path) -> None:
    model = GPT(CONFIG)
    with torch.no_grad():
        model.tokens.weight.fill_(torch.finfo(torch.float32).max)  # their sum is not finite
    assert bundle.load(bundle.save(tmp_path / "model", model)).config == CONFIG


@pytest.mark.parametrize("name", ["pocket", "pocket-bert"])
def test_a_classifier_is_loaded_with_its_class_names(name: str, tmp_path: Path) -> None:
    sizes = {"vocab_size": 40, "context_length": 8, "n_layers": 1, "d_model": 16, "n_heads": 2, "d_ff": 32}
    model = build(classifying(preset(name).replace(**sizes), ["ভালো", "মন্দ", "মাঝারি"])).eval()
    bundle.save(tmp_path / "model", model)
    again = bundle.load(tmp_path / "model").model
    assert again.config == model.config and again.config.labels == ("ভালো", "মন্দ", "মাঝারি")  # type: ignore[union-attr]
    tokens, real = torch.randint(40, (2, 8)), torch.ones(2, 8, dtype=torch.bool)
    assert torch.equal(again(tokens, real), model(tokens, real))


def test_a_file_that_torch_cannot_open_gives_a_message(tmp_path: Path) -> None:
    """The library opens a file twice: the second time in torch, which raises a plain RuntimeError."""
    file = tmp_path / "model.safetensors"
    with (
        pytest.raises(KothaError, match=r"model\.safetensors cannot be read: No such file or directory \(2\)$"),
        reading_weights(file),
    ):
        torch.UntypedStorage.from_file(str(file), shared=False, nbytes=8)
    with pytest.raises(RuntimeError, match="shapes"), reading_weights(file):
        torch.ones(2, 3) @ torch.ones(2, 3)  # of something else
