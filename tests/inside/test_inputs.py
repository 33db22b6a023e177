"""Model inputs: a text or an image as tensors, and a readable piece for each position."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.inside.small_models import TEXT, small
from tests.text.conftest import trained

from kotha.errors import UsageError
from kotha.generation.engine import Engine
from kotha.generation.request import Request
from kotha.generation.settings import SamplingSettings
from kotha.inside.inputs import name_piece, read, read_image
from kotha.storage.images import read_picture


def joined(pieces) -> str:
    return "".join(piece.text for piece in pieces).replace("␣", " ").replace("◌", "").strip()


def test_a_gpt_input_begins_with_the_start_token() -> None:
    bundle = small("gpt")
    given = read(bundle.model, bundle.tokenizer, TEXT)
    assert given.inputs[0].tolist() == [[bundle.tokenizer.special["eos"], *bundle.tokenizer.encode(TEXT)]]
    assert joined(given.lines["tokens"][1:]) == bundle.tokenizer.normalize(TEXT)
    assert (given.written_from, given.remarks) == (None, ())


def test_inspection_and_generation_use_the_same_input() -> None:
    bundle = small("gpt")
    given = read(bundle.model, bundle.tokenizer, TEXT)
    greedy = Request(prompt=TEXT, tokens=1, settings=SamplingSettings(temperature=0, repetition_penalty=None))
    [result] = Engine(bundle.model, bundle.tokenizer).generate([greedy])
    assert result.prompt_tokens == len(given.lines["tokens"])
    assert result.ids == (int(given.pass_through(bundle.model)[0, -1].argmax()),)


def test_an_empty_text_is_the_start_token() -> None:
    bundle = small("gpt")
    given = read(bundle.model, bundle.tokenizer, "")
    assert [piece.text for piece in given.lines["tokens"]] == ["<|endoftext|>"]
    assert list(map(str, given.remarks)) == ["the text is empty; the input consists of special tokens only"]


def test_a_long_text_is_cut_with_a_remark_unless_generating() -> None:
    bundle = small("gpt")
    ids = bundle.tokenizer.encode(TEXT * 9)
    given = read(bundle.model, bundle.tokenizer, TEXT * 9)
    assert given.inputs[0].tolist() == [ids[-48:]]
    assert f"the text has {len(ids) + 1} tokens; the model sees only the last 48" in str(given.remarks[0]), (
        "its start is one"
    )
    with pytest.raises(UsageError, match="exceed the context length of 48"):
        read(bundle.model, bundle.tokenizer, TEXT, write=lambda ids: [1] * 48)


def test_generated_tokens_are_marked() -> None:
    bundle = small("gpt")
    given = read(bundle.model, bundle.tokenizer, TEXT, write=lambda ids: [ids[0], ids[1]])
    ids = [bundle.tokenizer.special["eos"], *bundle.tokenizer.encode(TEXT)]
    assert given.inputs[0].tolist() == [[*ids, *ids[:2]]]
    assert given.written_from == len(ids)


def test_a_bert_reads_one_sentence_or_two_and_masks() -> None:
    bundle = small("bert")
    special = bundle.tokenizer.special
    alone = read(bundle.model, bundle.tokenizer, "আজ [MASK] হবে")
    assert alone.inputs[0][0, 0] == special["cls"] and alone.inputs[0][0, -1] == special["sep"]
    assert (alone.inputs[0] == special["mask"]).sum() == 1 and alone.inputs[1].sum() == 0
    assert "[MASK]" in [piece.text for piece in alone.lines["tokens"]]
    pair = read(bundle.model, bundle.tokenizer, "আজ", second="কাল")
    assert (pair.inputs[0] == special["sep"]).sum() == 2
    first = pair.inputs[0][0].tolist().index(special["sep"])
    assert pair.inputs[1][0].tolist() == [0] * (first + 1) + [1] * (pair.inputs[1].shape[1] - first - 1)


def test_a_seq2seq_reads_source_and_target() -> None:
    bundle = small("seq2seq")
    tokenizer = bundle.tokenizer
    given = read(bundle.model, tokenizer, "আজ মেলা", target="কাল মেলা")
    assert given.inputs[0].tolist() == [[*tokenizer.encode("আজ মেলা"), tokenizer.special["eos"]]]
    assert given.inputs[1].tolist() == [[tokenizer.special["bos"], *tokenizer.encode("কাল মেলা")]]
    assert given.lines_of("decoder.1.cross") == ("target", "source")
    assert given.lines_of("decoder.0.attention") == ("target", "target")
    assert given.lines_of("encoder.0.attention") == ("source", "source")
    assert read(bundle.model, tokenizer, "আজ", write=lambda source: source[:1]).written_from == 1


@pytest.mark.parametrize(
    ("body", "given", "wording"),
    [
        ("gpt", {"second": "ক"}, "second applies only to a BERT"),
        ("bert", {"target": "ক"}, "target applies only to a Seq2Seq"),
        ("bert", {"write": lambda ids: []}, "a BERT cannot generate text"),
        ("bert", {"text": TEXT * 9}, "more than the context length of 48; shorten it"),
        ("seq2seq", {}, "also needs a target"),
        ("seq2seq", {"text": "", "target": "ক"}, "nothing to translate"),
        ("seq2seq", {"target": "ক", "write": lambda ids: []}, "omit either generate or target"),
        ("seq2seq", {"target": TEXT * 9}, "the target has"),
        ("vit", {}, "takes images, not text"),
    ],
)
def test_an_unsupported_input_is_rejected(body: str, given: dict, wording: str) -> None:
    bundle = small(body)
    with pytest.raises(UsageError, match=wording):
        read(bundle.model, bundle.tokenizer, **{"text": "আজ", **given})


def test_pieces_are_readable_and_partial_characters_are_marked() -> None:
    tokenizer = trained("bpe-qwen35")
    (first, *_) = tokenizer.encode("ৡ")
    assert name_piece(tokenizer, first).part
    assert name_piece(tokenizer, tokenizer.special["eos"]).text == "<|endoftext|>"
    assert name_piece(tokenizer, 10**6).text == "‹1000000›"


PIXELS = (np.arange(64).reshape(8, 8) * 4).astype(np.uint8)


def write_picture(path: Path) -> Path:
    if path.suffix == ".npy":
        np.save(path, PIXELS)
    elif path.suffix == ".json":
        path.write_text(json.dumps(PIXELS.tolist()))
    elif path.suffix == ".pgm":
        path.write_bytes(b"P5\n# by hand\n8 8\n255\n" + PIXELS.tobytes())
    else:
        pillow = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
        pillow.fromarray(PIXELS).save(path)
    return path


@pytest.mark.parametrize("name", ["a.npy", "a.json", "a.pgm", "a.png"])
def test_image_file_formats(tmp_path: Path, name: str) -> None:
    given = read_image(small("vit").model, write_picture(tmp_path / name))
    expected = torch.from_numpy(PIXELS.astype(np.float32))[None, None] / 127.5 - 1
    torch.testing.assert_close(given.inputs[0], expected)
    assert [piece.text for piece in given.lines["patches"]] == ["class", "1,1", "1,2", "2,1", "2,2"]


def test_plain_pgm_and_colour_images(tmp_path: Path) -> None:
    (tmp_path / "a.pgm").write_text("P2 2 2 100 0 20 100 60")
    image = read_picture(tmp_path / "a.pgm", 2, 1)
    assert ((image + 1) * 127.5).round().tolist() == [[[0, 51], [255, 153]]]
    np.save(tmp_path / "c.npy", np.stack([PIXELS] * 3, axis=-1))
    assert [read_picture(tmp_path / "c.npy", 8, n).shape for n in (1, 3)] == [(1, 8, 8), (3, 8, 8)]


@pytest.mark.parametrize(
    ("name", "content", "wording"),
    [
        ("a.png", b"no image", "cannot be read as an image"),
        ("a.npy", b"no array", "does not contain an array of pixels"),
        ("a.json", b"[[1, 900]]", "pixels outside 0 to 255"),
        ("a.json", b'["x"]', "an image is"),
        ("a.pgm", b"P5 8 8 255 abc", "cannot be read as an image"),
    ],
)
def test_a_broken_image_is_rejected(tmp_path: Path, name: str, content: bytes, wording: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=wording):
        read_picture(tmp_path / name, 8, 1)


def test_a_missing_image_and_a_wrong_body_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"image .* not found"):
        read_image(small("vit").model, tmp_path / "none.png")
    with pytest.raises(UsageError, match="only a ViT takes an image"):
        read_image(small("gpt").model, torch.zeros(1, 8, 8))
