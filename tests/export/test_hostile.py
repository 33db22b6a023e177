"""Folders that lie: each a clear error, nothing written, nothing executed, no memory taken."""

import json
import os
import pickle
import re
import resource
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.export.models import CONFIGS, shaken

from kotha.artifacts.model_folder import save, unique_weights
from kotha.cli.main import main
from kotha.errors import KothaError
from kotha.export.huggingface.export import write_hf
from kotha.export.huggingface.import_ import import_hf
from kotha.export.huggingface.weight_files import find_weights
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


def with_header(folder: Path, header: Any, size: int | None = None, body: bytes = b"") -> None:
    text = json.dumps(header).encode() if not isinstance(header, bytes) else header
    (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(text) if size is None else size) + text + body)


def entry(shape: Any, dtype: Any = "F32", offsets: Any = (0, 0)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": list(offsets)}


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
    assert refused(folder, r"is truncated or broken: its header speaks of [0-9,]+ bytes, [0-9,]+ follow")


@pytest.mark.parametrize("size", [1 << 63, (1 << 64) - 1, 1 << 40, 1 << 24])
def test_oversized_headers(folder: Path, size: int) -> None:
    with_header(folder, {}, size)
    assert refused(folder, "its header claims [0-9,]+ bytes")


def test_a_real_header_of_many_megabytes(folder: Path) -> None:
    with_header(folder, b'{"' + b"x" * (9 << 20) + b'": 1}')
    assert refused(folder, "its header claims 9,4[0-9,]+ bytes")


@pytest.mark.parametrize("header", [b"[1, 2]", b"{x", b"\xff\xfe", b"[" * 50_000, b'{"a": 3}'])
def test_headers_that_are_none(folder: Path, header: bytes) -> None:
    with_header(folder, header)
    assert refused(folder, "is no safetensors file")


@pytest.mark.parametrize(
    "shape", [[-1, 4], [1 << 62, 1 << 62], [1.5], ["4"], None, 7, [True], {"a": 1}, [float("nan")]]
)
def test_absurd_shapes(folder: Path, shape: Any) -> None:
    with_header(folder, {"transformer.wte.weight": entry(shape)})
    assert refused(folder, "has shape .* which is none")


def test_shapes_that_no_file_holds(folder: Path) -> None:
    with_header(folder, {"transformer.wte.weight": entry([1 << 39, 1 << 39])})
    assert refused(folder, "its header speaks of [0-9,]+ bytes, 0 follow")


@pytest.mark.parametrize("dtype", ["F31", None, ["F32"], 32, "f32"])
def test_types_that_do_not_exist(folder: Path, dtype: Any) -> None:
    with_header(folder, {"transformer.wte.weight": entry([0], dtype)})
    assert refused(folder, "is of type .*, which cannot be read")


def test_overlapping_weights(folder: Path) -> None:
    weights = load_file(folder / WEIGHTS)
    names = list(weights)
    header = {name: entry(list(weights[name].shape), offsets=(0, weights[name].nbytes)) for name in names}
    with_header(folder, header, body=bytes(sum(weights[name].nbytes for name in names)))
    assert refused(folder, "cannot be read: Error while deserializing header")


# -- names, shapes and types against the config -----------------------------------------------------------------------


def changed(folder: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    weights = load_file(folder / WEIGHTS)
    change(weights)
    save_file(weights, folder / WEIGHTS)


def test_a_weight_too_many(folder: Path) -> None:
    changed(folder, lambda weights: weights.update({"../../etc/passwd": torch.zeros(1)}))
    assert refused(folder, r"has ../../etc/passwd, which its config has no place for")


def test_a_weight_too_few(folder: Path) -> None:
    changed(folder, lambda weights: weights.pop("transformer.ln_f.bias"))
    assert refused(folder, "lacks transformer.ln_f.bias, which its config asks for")


def test_another_shape(folder: Path) -> None:
    changed(folder, lambda weights: weights.update({"transformer.ln_f.bias": torch.zeros(17)}))
    assert refused(folder, r"transformer.ln_f.bias has shape \[17\], its config asks for \[16\]")


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8, torch.bool, torch.float8_e4m3fn])
def test_weights_that_are_no_floats(folder: Path, dtype: torch.dtype) -> None:
    changed(folder, lambda weights: weights.update({"transformer.ln_f.bias": torch.zeros(16).to(dtype)}))
    assert refused(folder, "transformer.ln_f.bias is .*; weights of float32")


# -- shards -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["../b.safetensors", "/etc/passwd", "..", ".", "", "sub/b.safetensors", "..\\b.safetensors", "a\0.safetensors"],
)
def test_paths_in_shard_names(folder: Path, name: str) -> None:
    shards(folder, {"transformer.ln_f.bias": name})
    assert refused(folder, "is not the name of a file in|is no shard of this model")


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
    assert import_hf(snapshot).layout.model_type == "gpt2"


def test_links_in_a_circle(folder: Path) -> None:
    shards(folder)
    (folder / "b.safetensors").unlink()
    (folder / "b.safetensors").symlink_to("c.safetensors")
    (folder / "c.safetensors").symlink_to("b.safetensors")
    assert refused(folder, "lacks b.safetensors, or it is a link that leads nowhere")


def test_an_index_that_names_itself(folder: Path) -> None:
    shards(folder, {"transformer.ln_f.bias": INDEX})
    assert refused(folder, "is no shard of this model; they end in .safetensors")


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
    assert refused(folder, f"{name} is in two shards, a.safetensors and b.safetensors")


def test_an_index_that_places_a_weight_twice(folder: Path) -> None:
    shards(folder)
    text = (folder / INDEX).read_text()
    (folder / INDEX).write_text(text.replace("}}", ', "transformer.ln_f.bias": "a.safetensors"}}'))
    assert refused(folder, "is broken: the key 'transformer.ln_f.bias' comes twice")


def test_an_index_and_its_shards_that_disagree(folder: Path) -> None:
    index = shards(folder)
    moved = next(name for name, file in index.items() if file == "a.safetensors")
    (folder / INDEX).write_text(json.dumps({"weight_map": {**index, moved: "b.safetensors"}}))
    assert refused(folder, f"a.safetensors holds {moved}, which {INDEX} does not place there")
    (folder / INDEX).write_text(json.dumps({"weight_map": {**index, "more.weight": "a.safetensors"}}))
    assert refused(folder, f"a.safetensors lacks more.weight, which {INDEX} places there")


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
    assert refused(folder, r"has shape .*, its config asks for \[3221225472\]")


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
        ({"architectures": ["GPT2ForTokenClassification"]}, "architectures=.* cannot be read; of GPT-2"),
        ({"auto_map": {"AutoModel": "evil.Model"}}, "auto_map: this model brings code of its own"),
        ({"quantization_config": {"bits": 4}}, "quantization_config: these weights were made smaller"),
        ({"activation_function": "swish"}, "activation_function='swish' is not an activation of ours; gelu, gelu_new"),
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
        ("qwen3", {"rope_parameters": {"rope_type": "yarn", "factor": 4}}, "rope_parameters=.*yarn.*: ours turn"),
        ("qwen3", {"rope_scaling": {"type": "linear", "factor": 2}}, "rope_scaling=.*linear"),
        ("qwen3", {"use_sliding_window": True}, "use_sliding_window=true is not what our Qwen3 has"),
        ("qwen3", {"layer_types": ["full_attention", "sliding_attention"]}, "layer_types=.*sliding"),
        ("llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor=0.5: ours turn the whole of a head"),
        ("llama", {"hidden_act": "gelu"}, "hidden_act='gelu' is not an activation of ours; silu can be read"),
        ("bert", {"position_embedding_type": "relative_key"}, 'position_embedding_type="relative_key" is not'),
        ("bert", {"is_decoder": True}, "is_decoder=true is not what our BERT has"),
        ("bert", {"tie_word_embeddings": False}, "tie_word_embeddings=false is not what our BERT has"),
        ("marian", {"scale_embedding": False}, "scale_embedding=false is not what our Marian has"),
        ("marian", {"decoder_ffn_dim": 7}, "decoder_ffn_dim=7 differs from encoder_ffn_dim=64"),
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
        ({"rope_parameters": "default"}, 'rope_parameters="default": ours turn by the position alone'),
        ({"rope_scaling": "default"}, 'rope_scaling="default": ours turn by the position alone'),
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
    ("size", "said"), [(700, "has 700 tokens, its model 512"), (512, "is not the one that the model went out with")]
)
def test_a_tokenizer_of_another_model(folder: Path, size: int, said: str) -> None:
    other = train(built_in_lines(), "bpe", size)
    assert other.vocab_size == size
    other.save(folder)
    assert refused(folder, said)


def test_a_tokenizer_without_the_configs_tokens(folder: Path) -> None:
    change(folder, eos_token_id=511_000)
    assert refused(folder, "eos_token_id=511000 in config.json, and 512 tokens")


def test_a_tokenizer_far_smaller_than_the_model(tmp_path: Path) -> None:
    bundle = shaken(CONFIGS["gpt2"].replace(vocab_size=4000))
    write_hf(bundle, tmp_path / "hf")
    assert refused(tmp_path / "hf", "its tokenizer has only 512 tokens, its model 4,000")
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


class Evil:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.mark}",)


def test_code_in_a_pickle_is_not_run(folder: Path, tmp_path: Path) -> None:
    (folder / WEIGHTS).unlink()
    torch.save({"transformer.wte.weight": Evil(tmp_path / "ran")}, folder / "pytorch_model.bin")
    assert refused(folder, "cannot be opened as weights alone: .*nothing in it was run; ask for safetensors")
    assert not (tmp_path / "ran").exists()


def test_a_bare_pickle_is_not_opened(folder: Path, tmp_path: Path) -> None:
    (folder / WEIGHTS).unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Evil(tmp_path / "ran")))
    assert refused(folder, "is not what torch.save writes today")
    assert not (tmp_path / "ran").exists()


def test_an_archive_that_would_grow(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    with zipfile.ZipFile(folder / "pytorch_model.bin", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(30 << 20))
    assert refused(folder, "is a packed archive, which torch.save does not write")


def test_a_pickled_weight_that_claims_to_be_huge(folder: Path) -> None:
    weights = load_file(folder / WEIGHTS)
    (folder / WEIGHTS).unlink()
    n_tokens = 1 << 23
    weights["transformer.wte.weight"] = torch.zeros(1).expand(n_tokens, 16)
    torch.save(weights, folder / "pytorch_model.bin")
    (folder / "tokenizer.json").unlink()
    change(folder, vocab_size=n_tokens)  # so that names and shapes are all as they should be
    assert refused(folder, r"pytorch_model.bin claims 536,9\d\d,\d\d\d bytes of weights, and has")


def test_pickled_weights_that_lie_in_one_place(folder: Path, tmp_path: Path) -> None:
    weights = load_file(folder / WEIGHTS)
    (folder / WEIGHTS).unlink()
    place = torch.randn(20)
    weights["transformer.h.0.ln_1.weight"], weights["transformer.h.1.ln_1.weight"] = place[:16], place[4:]
    torch.save(weights, folder / "pytorch_model.bin")
    model = import_hf(folder).bundle.model
    save(tmp_path / "model", model)
    assert torch.equal(model.get_parameter("stack.blocks.1.attention_norm.weight"), place[4:])
    weights["transformer.h.0.ln_1.weight"] = torch.zeros(16, device="meta")
    torch.save(weights, folder / "pytorch_model.bin")
    assert refused(folder, "'transformer.h.0.ln_1.weight' is not a plain weight")


@pytest.mark.parametrize("values", [[1, 2], {"a": 3}, {1: torch.zeros(1)}, {"a": torch.zeros(2).to_sparse()}])
def test_a_pickle_of_other_things(folder: Path, values: Any) -> None:
    (folder / WEIGHTS).unlink()
    torch.save(values, folder / "pytorch_model.bin")
    assert refused(folder, "holds no table of weights|is not a plain weight|cannot be opened as weights alone")


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


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "table", [b"\x80\x02c" + b"x " * 20_000 + b"\ny\n.", b"\x80\x02c" + b"x" * 40_000 + b"\ny\n.", b"\x80"]
)
def test_a_pickle_that_asks_for_an_endless_name(tmp_path: Path, table: bytes) -> None:
    """torch looks through its own message about it for minutes."""
    with zipfile.ZipFile(tmp_path / "pytorch_model.bin", "w") as archive:
        archive.writestr("it/data.pkl", table)
        archive.writestr("it/version", b"3")
    with pytest.raises(KothaError, match="cannot be opened as weights alone: its table is broken"):
        find_weights(tmp_path)


def test_a_shard_whose_name_is_half_a_character(tmp_path: Path) -> None:
    placed = {"weight_map": {"a": "\ud800.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(placed), encoding="utf-8")
    with pytest.raises(KothaError, match="or it is a link that leads nowhere"):
        find_weights(tmp_path)


def test_an_archive_on_several_disks(tmp_path: Path) -> None:
    """The end of a zip64 archive says where its table is: on the last of three disks."""
    locator, end = struct.pack("<4sLQL", b"PK\x06\x07", 0, 0, 3), struct.pack("<4s4H2LH", b"PK\5\6", *[0] * 7)
    (tmp_path / "pytorch_model.bin").write_bytes(bytes(100) + locator + end)
    # As Python 3.11 says it, and 3.12.
    with pytest.raises(KothaError, match=r"span multiple disks|is not what torch\.save writes"):
        find_weights(tmp_path)
