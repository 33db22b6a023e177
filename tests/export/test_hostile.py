"""Malicious and damaged folders give a clear error; nothing is written or executed, and no memory is allocated."""

import json
import os
import re
import resource
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.export.models import CONFIGS, shaken

from kotha.artifacts.model_folder import unique_weights
from kotha.cli.main import main
from kotha.errors import KothaError
from kotha.export.huggingface.export import write_hf
from kotha.export.huggingface.import_ import find_weights, import_hf
from kotha.export.parity import built_in_lines
from kotha.text.tokenizer.trainers import train

WEIGHTS, CONFIG, INDEX = "model.safetensors", "config.json", "model.safetensors.index.json"
PLACED = "transformer.h.0.attn.c_attn.bias"  # in the first shard


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good") / "hf"
    write_hf(shaken(CONFIGS["gpt2"]), folder)
    return folder


@pytest.fixture
def folder(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good, tmp_path / "hf"))


def refused(folder: Path, said: str) -> bool:
    """Whether the import fails with this message, without allocating memory or leaving files."""
    before = {path: path.lstat().st_mtime_ns for path in folder.parent.rglob("*")}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(KothaError) as error:
        import_hf(folder)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 200_000  # KiB
    assert {path: path.lstat().st_mtime_ns for path in folder.parent.rglob("*")} == before
    assert re.search(said, str(error.value)), f"{said!r} is not in {str(error.value)!r}"
    return True


def change(folder: Path, **values: Any) -> None:
    config = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps({**config, **values}))


def shards(folder: Path, placed: dict[str, str] | None = None) -> dict[str, str]:
    """Split the weights into two shards with an index; ``placed`` changes entries in the index."""
    weights = load_file(folder / WEIGHTS)
    (folder / WEIGHTS).unlink()
    names = sorted(weights)
    halves = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, part in halves.items():
        save_file({name: weights[name] for name in part}, folder / file)
    index = {name: file for file, part in halves.items() for name in part} | (placed or {})
    (folder / INDEX).write_text(json.dumps({"weight_map": index}))
    return index


def test_the_undamaged_folder_opens_with_and_without_shards(folder: Path) -> None:
    whole = unique_weights(import_hf(folder).bundle.model)
    shards(folder)
    parts = unique_weights(import_hf(folder).bundle.model)
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


# -- ways to damage a folder -------------------------------------------------------------------------------------------

Spoil = Callable[[Path], Any]


def holds(name: str, content: bytes | str) -> Spoil:
    """Replace a file's content."""
    data = content if isinstance(content, bytes) else content.encode()
    return lambda folder: (folder / name).write_bytes(data)


def header(content: bytes, size: int | None = None) -> Spoil:
    """Replace the weights with a header that claims a given size."""
    return holds(WEIGHTS, struct.pack("<Q", len(content) if size is None else size) + content)


def described(shape: Any, dtype: Any) -> Spoil:
    entry = {"dtype": dtype, "shape": shape, "data_offsets": [0, 0]}
    return header(json.dumps({"transformer.wte.weight": entry}).encode())


def cut(length: int) -> Spoil:
    return lambda folder: holds(WEIGHTS, (folder / WEIGHTS).read_bytes()[:length])(folder)


def overlapping(folder: Path) -> None:
    entries = {
        name: {"dtype": "F32", "shape": list(each.shape), "data_offsets": [0, each.nbytes]}
        for name, each in load_file(folder / WEIGHTS).items()
    }
    text = json.dumps(entries).encode()
    holds(WEIGHTS, struct.pack("<Q", len(text)) + text + bytes((folder / WEIGHTS).stat().st_size))(folder)


def weight(name: str, value: torch.Tensor | None) -> Spoil:
    """Replace or remove a weight."""

    def spoil(folder: Path) -> None:
        weights = {**load_file(folder / WEIGHTS), name: value}
        save_file({name: each for name, each in weights.items() if each is not None}, folder / WEIGHTS)

    return spoil


def sharded(spoil: Spoil, placed: dict[str, str] | None = None) -> Spoil:
    """Split the weights into two shards first."""

    def spoil_shards(folder: Path) -> None:
        assert shards(folder, placed)[PLACED] == "a.safetensors"
        spoil(folder)

    return spoil_shards


def links_out(folder: Path) -> None:
    (folder / "b.safetensors").rename(folder.parent / "b.safetensors")
    (folder / "b.safetensors").symlink_to("../b.safetensors")


def links_in_a_circle(folder: Path) -> None:
    (folder / "b.safetensors").unlink()
    (folder / "b.safetensors").symlink_to("c.safetensors")
    (folder / "c.safetensors").symlink_to("b.safetensors")


def is_a_folder(folder: Path) -> None:
    (folder / "b.safetensors").unlink()
    (folder / "b.safetensors").mkdir()


def is_in_two_shards(folder: Path) -> None:
    weights = load_file(folder / "b.safetensors") | {PLACED: load_file(folder / "a.safetensors")[PLACED]}
    save_file(weights, folder / "b.safetensors")


def is_placed(name: str, file: str) -> Callable[[Path], None]:
    """Change a weight's entry in the index."""

    def change_index(folder: Path) -> None:
        index = json.loads((folder / INDEX).read_text())["weight_map"]
        (folder / INDEX).write_text(json.dumps({"weight_map": {**index, name: file}}))

    return change_index


def is_placed_twice(folder: Path) -> None:
    text = (folder / INDEX).read_text()
    (folder / INDEX).write_text(text.replace("}}", f', "{PLACED}": "a.safetensors"}}}}'))


def config_links_out(folder: Path) -> None:
    (folder / CONFIG).rename(folder.parent / "elsewhere.json")
    (folder / CONFIG).symlink_to(folder.parent / "elsewhere.json")


def config_of_100_megabytes(folder: Path) -> None:
    with (folder / CONFIG).open("wb") as file:
        file.truncate(100 << 20)


def without_tokenizer(folder: Path, **values: Any) -> None:
    (folder / "tokenizer.json").unlink()
    change(folder, **values)


def changed(name: str, value: Any) -> Spoil:
    return lambda folder: change(folder, **{name: value})


def marians_pair(folder: Path) -> None:
    without_tokenizer(folder)
    (folder / "source.spm").write_bytes(b"")


def a_pickle(folder: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return os.system, (f"touch {folder.parent / 'ran'}",)

    (folder / WEIGHTS).unlink()
    torch.save({"transformer.wte.weight": Evil()}, folder / "pytorch_model.bin")


SHAPES = [-1, 4], [1 << 62, 1 << 62], [1 << 39, 1 << 39], [1.5], ["4"], None, 7, [True], {"a": 1}, [float("nan")]
TYPES = "F31", None, ["F32"], 32, "f32"
PATHS = ["../b.safetensors", "/etc/passwd", "..", ".", "", "sub/b.safetensors", "..\\b.safetensors", "a\0.safetensors"]
BIAS = "transformer.ln_f.bias"
NO_CONFIGS = "[" * 100_000, '{"a":' * 50_000, "{", "[]", "\ufeff", '{"a": 1, "a": 2}', ""
SIZES = -1, 0, 1 << 70, 2.5, float("nan"), "2", None, True, [2]
HUGE = dict.fromkeys(("n_embd", "n_inner", "vocab_size"), 1 << 30)


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        # Damage to the header of the weights.
        *((cut(length), "is truncated or not a safetensors file: its header claims") for length in (0, 4, 8, 100)),
        (cut(-100), "cannot be read: "),
        *(
            (header(b"{}", size), "its header claims [0-9,]+ bytes")
            for size in (1 << 63, (1 << 64) - 1, 1 << 40, 1 << 24)
        ),
        (header(b'{"' + b"x" * (9 << 20) + b'": 1}'), "its header claims 9,4[0-9,]+ bytes"),
        *((header(text), "is not a safetensors file") for text in (b"[1, 2]", b"{x", b"\xff\xfe", b"[" * 50_000)),
        (header(b'{"a": 3}'), "is not a safetensors file"),
        *((described(shape, "F32"), "cannot be read: |is not a safetensors file") for shape in SHAPES),
        *((described([0], kind), "cannot be read: |is not a safetensors file") for kind in TYPES),
        (overlapping, "cannot be read: Error while deserializing header"),
        # Names, shapes and types that do not match the config.
        (weight("../../etc/passwd", torch.zeros(1)), "contains ../../etc/passwd, which its config does not define"),
        (weight("transformer.h.00.ln_1.weight", torch.zeros(16)), "which its config does not define"),
        (weight(BIAS, None), "has no transformer.ln_f.bias, which its config requires"),
        (
            weight(BIAS, torch.zeros(17)),
            r"ln_f.bias has shape \[17\] and type F32; the config requires shape \[16\] and one of the types F",
        ),
        *(
            (weight(BIAS, torch.zeros(16).to(dtype)), r"ln_f.bias has shape \[16\] and type .*; the config requires")
            for dtype in (torch.int32, torch.uint8, torch.bool, torch.float8_e4m3fn)
        ),
        (lambda folder: without_tokenizer(folder, **HUGE, n_head=8), r"the config requires shape \[3221225472\]"),
        # Shards.
        *((sharded(lambda _: None, {BIAS: name}), "is not a valid file name in") for name in PATHS),
        (sharded(links_out), "b.safetensors links to .*, outside the folder"),
        (sharded(links_in_a_circle), "has no b.safetensors, or it is a broken link"),
        (sharded(lambda folder: (folder / "b.safetensors").unlink()), "has no b.safetensors"),
        (sharded(is_a_folder), "b.safetensors is not a file"),
        (sharded(is_in_two_shards), f"{INDEX} and b.safetensors disagree on where '{PLACED}'"),
        (sharded(is_placed_twice), f"is corrupted: the key '{PLACED}' occurs twice"),
        (sharded(is_placed(PLACED, INDEX)), "index.json is truncated or not a safetensors file"),
        (sharded(is_placed(PLACED, "b.safetensors")), f"{INDEX} and [ab].safetensors disagree on where '{PLACED}'"),
        (
            sharded(is_placed("more.weight", "a.safetensors")),
            f"{INDEX} and a.safetensors disagree on where 'more.weight'",
        ),
        *(
            (sharded(holds(INDEX, json.dumps(index))), "weight_map must map each")
            for index in ({}, {"weight_map": []}, {"weight_map": {}}, {"weight_map": {"a": 1}})
        ),
        # config.json.
        (config_links_out, "config.json links to .*, outside the folder"),
        (config_of_100_megabytes, "config.json is 104,857,600 bytes, which is too large for a config.json"),
        *((holds(CONFIG, text), "config.json is corrupted: ") for text in NO_CONFIGS),
        *(
            (changed(name, value), f"{name}=.* must be an integer")
            for name in ("n_layer", "vocab_size")
            for value in SIZES
        ),
        # The tokenizer.
        *(
            (holds("tokenizer.json", text), "not a valid tokenizer.json")
            for text in ("{", "[" * 100_000, "{}", '{"model": {"type": "BPE"}}')
        ),
        (lambda folder: train(built_in_lines(), "bpe", 700).save(folder), "it has 700 tokens, but the model has 512"),
        (marians_pair, r"two SentencePiece models \(Marian\)"),
        (a_pickle, "has no weights: neither model.safetensors nor .* found; convert other formats to safetensors"),
    ],
)
def test_damaged_folders_are_rejected(folder: Path, spoil: Spoil, expected: str) -> None:
    spoil(folder)
    assert refused(folder, expected)
    assert not (folder.parent / "ran").exists()


def test_links_of_the_hubs_cache_are_followed(folder: Path, tmp_path: Path) -> None:
    snapshot, blobs = tmp_path / "cache" / "snapshots" / "abc", tmp_path / "cache" / "blobs"
    snapshot.mkdir(parents=True)
    shutil.copytree(folder, blobs)
    for file in blobs.iterdir():
        (snapshot / file.name).symlink_to(Path("../../blobs") / file.name)
    assert import_hf(snapshot).layout.name == "gpt2"


# -- config.json ------------------------------------------------------------------------------------------------------

SETTINGS: list[tuple[str, dict[str, Any], str]] = [
    ("gpt2", {"model_type": "zebra"}, "model_type='zebra' is not supported; known: bert, gpt2"),
    ("gpt2", {"model_type": "gpt3"}, "did you mean 'gpt2'"),
    ("gpt2", {"model_type": None}, "it has no model_type, so this is not a Hugging Face folder"),
    ("gpt2", {"architectures": ["GPT2ForTokenClassification"]}, "is not supported for GPT-2; it must be GPT2Model or"),
    ("gpt2", {"auto_map": {"AutoModel": "evil.Model"}}, "auto_map: custom model code"),
    ("gpt2", {"quantization_config": {"bits": 4}}, "quantization_config: .* quantized weights"),
    (
        "gpt2",
        {"activation_function": "swish"},
        'activation_function="swish" is not supported for GPT-2; it must be gelu, gelu_new',
    ),
    ("gpt2", {"activation_function": ["gelu"]}, "activation_function="),
    ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "layer_idx=true is not supported for GPT-2"),
    ("gpt2", {"tie_word_embeddings": "yes"}, "tie_word_embeddings='yes' must be true or false"),
    ("gpt2", {"layer_norm_epsilon": float("inf")}, "layer_norm_epsilon=inf must be a number"),
    ("gpt2", {"n_head": 3}, "n_embd=16 is not divisible by n_head=3"),
    ("gpt2", {"n_layer": 10**9}, "n_layer=1000000000 is too large"),
    ("gpt2", {"n_layer": 1000}, r"its config has 1,000 layers, but there are only [0-9]+ tensors in its files"),
    ("gpt2", {"eos_token_id": 511_000}, r"config.json refers to token ids .*511000.*, but the tokenizer has only 512"),
    (
        "qwen3",
        {"rope_parameters": {"rope_type": "yarn", "factor": 4}},
        "yarn.* is not supported for Qwen3; it must be rope_type def",
    ),
    ("qwen3", {"rope_scaling": {"type": "linear", "factor": 2}}, "rope_scaling=.*linear"),
    ("qwen3", {"use_sliding_window": True}, "use_sliding_window=true is not supported for Qwen3"),
    ("qwen3", {"layer_types": ["full_attention", "sliding_attention"]}, "layer_types=.*sliding"),
    ("llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor=0.5 is not supported for Llama; it must be 1"),
    ("llama", {"hidden_act": "gelu"}, 'hidden_act="gelu" is not supported for Llama; it must be silu'),
    ("llama", {"rope_parameters": "default"}, 'rope_parameters="default" is not supported for Llama'),
    ("llama", {"rope_scaling": "default"}, 'rope_scaling="default" is not supported for Llama'),
    ("llama", {"rope_parameters": {"rope_theta": 10**400}}, "rope_theta=10{49} must be a number"),
    ("llama", {"rope_parameters": {"rope_theta": "x"}}, "rope_theta='x' must be a number"),
    ("bert", {"position_embedding_type": "relative_key"}, 'position_embedding_type="relative_key" is not'),
    ("bert", {"is_decoder": True}, "is_decoder=true is not supported for BERT"),
    ("bert", {"tie_word_embeddings": False}, "tie_word_embeddings=false is not supported for BERT"),
    ("marian", {"scale_embedding": False}, "scale_embedding=false is not supported for Marian"),
    ("marian", {"decoder_ffn_dim": 7}, "decoder_ffn_dim=7 is not supported for Marian; it must be encoder_ffn_dim=64"),
    ("marian", {"share_encoder_decoder_embeddings": False}, "share_encoder_decoder_embeddings=false"),
    ("vit", {"qkv_bias": False}, "qkv_bias=false is not supported for ViT"),
    ("vit", {"image_size": 9}, "image_size=9 is not divisible by patch_size=4"),
    (
        "vit",
        dict.fromkeys(("image_size", "patch_size", "num_channels"), 1 << 29),
        "describes impossibly large matrices",
    ),
]


@pytest.mark.parametrize(("name", "values", "expected"), SETTINGS)
def test_an_unsupported_setting_is_named(name: str, values: dict[str, Any], expected: str, tmp_path: Path) -> None:
    write_hf(shaken(CONFIGS[name]), tmp_path / "hf")
    change(tmp_path / "hf", **values)
    assert refused(tmp_path / "hf", expected)


@pytest.mark.parametrize("record", [7, {}, {"model": 3}, {"model": {"family": "gpt"}}, {"model": None}, [1]])
def test_an_invalid_kotha_record_is_ignored(folder: Path, record: Any) -> None:
    change(folder, kotha=record)
    assert import_hf(folder).bundle.config.attention_bias


def test_a_kotha_record_that_disagrees_is_ignored(folder: Path) -> None:
    record = json.loads((folder / CONFIG).read_text())["kotha"]
    record["model"]["norm_eps"] = 0.1
    change(folder, kotha=record)
    assert import_hf(folder).bundle.config.norm_eps == 1e-5


def test_a_tokenizer_far_smaller_than_the_model(tmp_path: Path) -> None:
    bundle = shaken(CONFIGS["gpt2"].replace(vocab_size=4000))
    write_hf(bundle, tmp_path / "hf")
    assert refused(tmp_path / "hf", "it has 512 tokens, but the model has 4,000")
    assert import_hf(tmp_path / "hf", with_tokenizer=False).bundle.tokenizer is None


# -- the command ------------------------------------------------------------------------------------------------------


def test_the_command_prints_one_line_and_writes_nothing(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(folder, n_layer=10**3)
    assert main(["import", str(folder), "--out", str(tmp_path / "out")]) == 1
    output = capsys.readouterr().err
    assert output.startswith(f"kotha: {folder}: its config has 1,000 layers")
    assert not (tmp_path / "out").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]


def test_a_shard_name_with_a_lone_surrogate(tmp_path: Path) -> None:
    placed = {"weight_map": {"a": "\ud800.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(placed), encoding="utf-8")
    with pytest.raises(KothaError, match="or it is a broken link"):
        find_weights(tmp_path)
