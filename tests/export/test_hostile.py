"""Folders that lie: each a clear error, nothing written, nothing executed, no memory taken."""

import json
import os
import re
import resource
import shutil
import struct
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


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good") / "hf"
    write_hf(shaken(CONFIGS["gpt2"]), folder)
    return folder


@pytest.fixture
def folder(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good, tmp_path / "hf"))


def refused(folder: Path, said: str) -> bool:
    """Whether the import fails with these words; that it takes no memory and leaves nothing is asserted here."""
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
    """Split the weights in two, with an index; ``placed`` changes what the index says."""
    weights = load_file(folder / WEIGHTS)
    (folder / WEIGHTS).unlink()
    names = sorted(weights)
    halves = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, part in halves.items():
        save_file({name: weights[name] for name in part}, folder / file)
    index = {name: file for file, part in halves.items() for name in part} | (placed or {})
    (folder / INDEX).write_text(json.dumps({"weight_map": index}))
    return index


def test_the_good_one_opens_whole_and_sharded(folder: Path) -> None:
    whole = unique_weights(import_hf(folder).bundle.model)
    shards(folder)
    parts = unique_weights(import_hf(folder).bundle.model)
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


# -- the header -------------------------------------------------------------------------------------------------------


def test_truncated_headers(folder: Path) -> None:
    data = (folder / WEIGHTS).read_bytes()
    for cut in (0, 4, 8, 100):
        (folder / WEIGHTS).write_bytes(data[:cut])
        assert refused(folder, "is truncated or no safetensors file: its header claims")
    (folder / WEIGHTS).write_bytes(data[:-100])
    assert refused(folder, "cannot be read: ")


@pytest.mark.parametrize(
    ("header", "size", "said"),
    [
        *((b"{}", size, "its header claims [0-9,]+ bytes") for size in (1 << 63, (1 << 64) - 1, 1 << 40, 1 << 24)),
        (b'{"' + b"x" * (9 << 20) + b'": 1}', None, "its header claims 9,4[0-9,]+ bytes"),
        *((header, None, "is no safetensors file") for header in (b"[1, 2]", b"{x", b"\xff\xfe", b"[" * 50_000)),
        (b'{"a": 3}', None, "is no safetensors file"),
    ],
)
def test_headers_that_are_none(folder: Path, header: bytes, size: int | None, said: str) -> None:
    (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(header) if size is None else size) + header)
    assert refused(folder, said)


SHAPES = [-1, 4], [1 << 62, 1 << 62], [1 << 39, 1 << 39], [1.5], ["4"], None, 7, [True], {"a": 1}, [float("nan")]
TYPES = "F31", None, ["F32"], 32, "f32"


@pytest.mark.parametrize(("shape", "dtype"), [*((shape, "F32") for shape in SHAPES), *(([0], kind) for kind in TYPES)])
def test_absurd_shapes_and_types(folder: Path, shape: Any, dtype: Any) -> None:
    entry = {"dtype": dtype, "shape": shape, "data_offsets": [0, 0]}
    header = json.dumps({"transformer.wte.weight": entry}).encode()
    (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(header)) + header)
    assert refused(folder, "cannot be read: |is no safetensors file")


def test_overlapping_weights(folder: Path) -> None:
    weights = load_file(folder / WEIGHTS)
    entries = {
        name: {"dtype": "F32", "shape": list(each.shape), "data_offsets": [0, each.nbytes]}
        for name, each in weights.items()
    }
    header = json.dumps(entries).encode()
    body = bytes(sum(each.nbytes for each in weights.values()))
    (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(header)) + header + body)
    assert refused(folder, "cannot be read: Error while deserializing header")


# -- names, shapes and types against the config -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("../../etc/passwd", torch.zeros(1), r"has ../../etc/passwd, which its config has no place for"),
        ("transformer.h.00.ln_1.weight", torch.zeros(16), "which its config has no place for"),
        ("transformer.ln_f.bias", None, "lacks transformer.ln_f.bias, which its config asks for"),
        ("transformer.ln_f.bias", torch.zeros(17), r"ln_f.bias is \[17\] of float32; its config asks for \[16\] of fl"),
        *(
            ("transformer.ln_f.bias", torch.zeros(16).to(dtype), r"ln_f.bias is \[16\] of .*; its config asks for")
            for dtype in (torch.int32, torch.uint8, torch.bool, torch.float8_e4m3fn)
        ),
    ],
)
def test_weights_that_the_config_does_not_ask_for(folder: Path, name: str, value: Any, said: str) -> None:
    weights = load_file(folder / WEIGHTS) | {name: value}
    save_file({name: each for name, each in weights.items() if each is not None}, folder / WEIGHTS)
    assert refused(folder, said)


# -- shards -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["../b.safetensors", "/etc/passwd", "..", ".", "", "sub/b.safetensors", "..\\b.safetensors", "a\0.safetensors"],
)
def test_paths_in_shard_names(folder: Path, name: str) -> None:
    shards(folder, {"transformer.ln_f.bias": name})
    assert refused(folder, "is not the name of a file in")


def test_links_out_of_the_folder(folder: Path, tmp_path: Path) -> None:
    shards(folder)
    (folder / "b.safetensors").rename(tmp_path / "b.safetensors")
    (folder / "b.safetensors").symlink_to("../b.safetensors")
    assert refused(folder, "b.safetensors is a link out of the folder, to ")


def test_a_config_that_links_out(folder: Path, tmp_path: Path) -> None:
    (folder / CONFIG).rename(tmp_path / "elsewhere.json")
    (folder / CONFIG).symlink_to(tmp_path / "elsewhere.json")
    assert refused(folder, "config.json is a link out of the folder")


def test_links_of_the_hubs_cache_are_followed(folder: Path, tmp_path: Path) -> None:
    snapshot, blobs = tmp_path / "cache" / "snapshots" / "abc", tmp_path / "cache" / "blobs"
    snapshot.mkdir(parents=True)
    shutil.copytree(folder, blobs)
    for file in blobs.iterdir():
        (snapshot / file.name).symlink_to(Path("../../blobs") / file.name)
    assert import_hf(snapshot).layout.name == "gpt2"


def test_links_in_a_circle(folder: Path) -> None:
    shards(folder)
    (folder / "b.safetensors").unlink()
    (folder / "b.safetensors").symlink_to("c.safetensors")
    (folder / "c.safetensors").symlink_to("b.safetensors")
    assert refused(folder, "lacks b.safetensors, or it is a link that leads nowhere")


def test_an_index_that_names_itself(folder: Path) -> None:
    shards(folder, {"transformer.ln_f.bias": INDEX})
    assert refused(folder, "index.json is truncated or no safetensors file")


def test_a_missing_shard(folder: Path) -> None:
    shards(folder)
    (folder / "b.safetensors").unlink()
    assert refused(folder, "lacks b.safetensors")


def test_a_folder_for_a_shard(folder: Path) -> None:
    shards(folder)
    (folder / "b.safetensors").unlink()
    (folder / "b.safetensors").mkdir()
    assert refused(folder, "b.safetensors is not a file")


def test_a_weight_in_two_shards(folder: Path) -> None:
    index = shards(folder)
    name = next(name for name, file in index.items() if file == "a.safetensors")
    weights = load_file(folder / "b.safetensors") | {name: load_file(folder / "a.safetensors")[name]}
    save_file(weights, folder / "b.safetensors")
    assert refused(folder, f"{INDEX} and b.safetensors disagree about '{name}'")


def test_an_index_that_places_a_weight_twice(folder: Path) -> None:
    shards(folder)
    text = (folder / INDEX).read_text()
    (folder / INDEX).write_text(text.replace("}}", ', "transformer.ln_f.bias": "a.safetensors"}}'))
    assert refused(folder, "is broken: the key 'transformer.ln_f.bias' comes twice")


def test_an_index_and_its_shards_that_disagree(folder: Path) -> None:
    index = shards(folder)
    moved = next(name for name, file in index.items() if file == "a.safetensors")
    (folder / INDEX).write_text(json.dumps({"weight_map": {**index, moved: "b.safetensors"}}))
    assert refused(folder, f"{INDEX} and [ab].safetensors disagree about '{moved}'")
    (folder / INDEX).write_text(json.dumps({"weight_map": {**index, "more.weight": "a.safetensors"}}))
    assert refused(folder, f"{INDEX} and a.safetensors disagree about 'more.weight'")


@pytest.mark.parametrize("index", [{}, {"weight_map": []}, {"weight_map": {}}, {"weight_map": {"a": 1}}])
def test_an_index_of_nothing(folder: Path, index: Any) -> None:
    shards(folder)
    (folder / INDEX).write_text(json.dumps(index))
    assert refused(folder, "weight_map must say for each weight the file that holds it")


# -- config.json ------------------------------------------------------------------------------------------------------


def test_a_config_of_100_megabytes(folder: Path) -> None:
    with (folder / CONFIG).open("wb") as file:
        file.truncate(100 << 20)
    assert refused(folder, "config.json has 104,857,600 bytes, far more than any config.json")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 50_000, "{", "[]", "\ufeff", '{"a": 1, "a": 2}', ""])
def test_a_config_that_is_none(folder: Path, text: str) -> None:
    (folder / CONFIG).write_text(text)
    assert refused(folder, "config.json is broken: ")


@pytest.mark.parametrize("value", [-1, 0, 1 << 70, 2.5, float("nan"), "2", None, True, [2]])
@pytest.mark.parametrize("name", ["n_layer", "vocab_size"])
def test_sizes_that_are_none(folder: Path, name: str, value: Any) -> None:
    change(folder, **{name: value})
    assert refused(folder, f"{CONFIG}: {name}=.* must be a whole number")


def test_a_thousand_million_layers(folder: Path) -> None:
    change(folder, n_layer=10**9)
    assert refused(folder, "n_layer=1000000000 is more than any model has")
    change(folder, n_layer=1000)
    assert refused(folder, r"1,000 layers in its config, and [0-9]+ tensors in its files")


def test_matrices_that_no_file_holds(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    change(folder, n_embd=1 << 30, n_inner=1 << 30, vocab_size=1 << 30, n_head=8)
    assert refused(folder, r"its config asks for \[3221225472\]")


def test_matrices_beyond_any_machine(tmp_path: Path) -> None:
    write_hf(shaken(CONFIGS["vit"]), tmp_path / "hf")
    change(tmp_path / "hf", image_size=1 << 29, patch_size=1 << 29, num_channels=1 << 29)
    assert refused(tmp_path / "hf", "its config asks for matrices beyond any machine")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"model_type": "zebra"}, "model_type='zebra' cannot be read; known: bert, gpt2"),
        ({"model_type": "gpt3"}, "did you mean 'gpt2'"),
        ({"model_type": None}, "it names no model_type; this is no Hugging Face folder"),
        ({"architectures": ["GPT2ForTokenClassification"]}, "architectures=.* is not what our GPT-2 has: GPT2Model or"),
        ({"auto_map": {"AutoModel": "evil.Model"}}, "auto_map: code that a model brings"),
        ({"quantization_config": {"bits": 4}}, "quantization_config: .* weights made smaller"),
        ({"activation_function": "swish"}, r'activation_function="swish" is not what our GPT-2 has: gelu, gelu_new'),
        ({"activation_function": ["gelu"]}, "activation_function="),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx=true is not what our GPT-2 has"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings='yes' must be true or false"),
        ({"layer_norm_epsilon": float("inf")}, "layer_norm_epsilon=inf must be a number"),
        ({"n_head": 3}, "n_embd=16 is not divisible by n_head=3"),
    ],
)
def test_a_setting_that_ours_do_not_have_is_named(folder: Path, values: dict[str, Any], said: str) -> None:
    change(folder, **values)
    assert refused(folder, said)


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        (
            "qwen3",
            {"rope_parameters": {"rope_type": "yarn", "factor": 4}},
            "rope_parameters=.*yarn.* is not what our Qwen3 has: rope_type default",
        ),
        ("qwen3", {"rope_scaling": {"type": "linear", "factor": 2}}, "rope_scaling=.*linear"),
        ("qwen3", {"use_sliding_window": True}, "use_sliding_window=true is not what our Qwen3 has"),
        ("qwen3", {"layer_types": ["full_attention", "sliding_attention"]}, "layer_types=.*sliding"),
        ("llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor=0.5 is not what our Llama has: 1"),
        ("llama", {"hidden_act": "gelu"}, 'hidden_act="gelu" is not what our Llama has: silu'),
        ("bert", {"position_embedding_type": "relative_key"}, 'position_embedding_type="relative_key" is not'),
        ("bert", {"is_decoder": True}, "is_decoder=true is not what our BERT has"),
        ("bert", {"tie_word_embeddings": False}, "tie_word_embeddings=false is not what our BERT has"),
        ("marian", {"scale_embedding": False}, "scale_embedding=false is not what our Marian has"),
        ("marian", {"decoder_ffn_dim": 7}, "decoder_ffn_dim=7 is not what our Marian has: encoder_ffn_dim=64"),
        ("marian", {"share_encoder_decoder_embeddings": False}, "share_encoder_decoder_embeddings=false"),
        ("vit", {"qkv_bias": False}, "qkv_bias=false is not what our ViT has"),
        ("vit", {"image_size": 9}, "image_size=9 is not divisible by patch_size=4"),
    ],
)
def test_so_in_the_other_layouts(name: str, values: dict[str, Any], said: str, tmp_path: Path) -> None:
    write_hf(shaken(CONFIGS[name]), tmp_path / "hf")
    change(tmp_path / "hf", **values)
    assert refused(tmp_path / "hf", said)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"rope_parameters": "default"}, 'rope_parameters="default" is not what our Llama has'),
        ({"rope_scaling": "default"}, 'rope_scaling="default" is not what our Llama has'),
        ({"rope_parameters": {"rope_theta": 10**400}}, "rope_theta=10{49} must be a number"),
        ({"rope_parameters": {"rope_theta": "x"}}, "rope_theta='x' must be a number"),
    ],
)
def test_positions_that_are_none(tmp_path: Path, values: dict[str, Any], said: str) -> None:
    write_hf(shaken(CONFIGS["llama"]), tmp_path / "hf")
    change(tmp_path / "hf", **values)
    assert refused(tmp_path / "hf", said)


@pytest.mark.parametrize("record", [7, {}, {"model": 3}, {"model": {"family": "gpt"}}, {"model": None}, [1]])
def test_a_record_of_ours_that_is_none_is_passed_over(folder: Path, record: Any) -> None:
    change(folder, kotha=record)
    assert import_hf(folder).bundle.config.attention_bias


def test_a_record_that_disagrees_is_passed_over(folder: Path) -> None:
    record = json.loads((folder / CONFIG).read_text())["kotha"]
    record["model"]["norm_eps"] = 0.1
    change(folder, kotha=record)
    assert import_hf(folder).bundle.config.norm_eps == 1e-5


# -- the tokenizer ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "said"),
    [(700, "it has 700 tokens, the model 512"), (512, "it is not the one that the model went out with")],
)
def test_a_tokenizer_of_another_model(folder: Path, size: int, said: str) -> None:
    other = train(built_in_lines(), "bpe", size)
    assert other.vocab_size == size
    other.save(folder)
    assert refused(folder, said)


def test_a_tokenizer_without_the_configs_tokens(folder: Path) -> None:
    change(folder, eos_token_id=511_000)
    assert refused(folder, r"config.json names tokens .*511000.*, and it has 512")


def test_a_tokenizer_far_smaller_than_the_model(tmp_path: Path) -> None:
    bundle = shaken(CONFIGS["gpt2"].replace(vocab_size=4000))
    write_hf(bundle, tmp_path / "hf")
    assert refused(tmp_path / "hf", "it has 512 tokens, the model 4,000")
    assert import_hf(tmp_path / "hf", with_tokenizer=False).bundle.tokenizer is None


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "{}", '{"model": {"type": "BPE"}}'])
def test_a_tokenizer_that_is_none(folder: Path, text: str) -> None:
    (folder / "tokenizer.json").write_text(text)
    assert refused(folder, "not a tokenizer.json that can be read")


def test_marians_pair_of_tokenizers(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    (folder / "source.spm").write_bytes(b"")
    assert refused(folder, "Marian's pair of SentencePiece models")


# -- pickles ----------------------------------------------------------------------------------------------------------


def test_a_pickle_is_never_opened(folder: Path, tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return os.system, (f"touch {tmp_path / 'ran'}",)

    (folder / WEIGHTS).unlink()
    torch.save({"transformer.wte.weight": Evil()}, folder / "pytorch_model.bin")
    assert refused(folder, "holds no weights: neither model.safetensors nor .*; save other formats as safetensors")
    assert not (tmp_path / "ran").exists()


# -- the command ------------------------------------------------------------------------------------------------------


def test_the_command_says_it_in_a_line_and_writes_nothing(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(folder, n_layer=10**3)
    assert main(["import", str(folder), "--out", str(tmp_path / "out")]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"kotha: {folder}: 1,000 layers")
    assert not (tmp_path / "out").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]


def test_a_shard_whose_name_is_half_a_character(tmp_path: Path) -> None:
    placed = {"weight_map": {"a": "\ud800.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(placed), encoding="utf-8")
    with pytest.raises(KothaError, match="or it is a link that leads nowhere"):
        find_weights(tmp_path)
