"""Inspection over HTTP: the same numbers as in the library, unsupported families, limits, silenced heads."""

import base64
import io
import struct
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import torch
from tests.inside.small_models import TEXT
from tests.loopback import http
from tests.server.conftest import Address, ask, refused

import kotha
from kotha.artifacts import model_folder as bundle
from kotha.inside.attention import attention_maps
from kotha.inside.heads.importance import every_head, silence
from kotha.inside.hook_points import layers
from kotha.inside.inputs import read, read_image
from kotha.inside.lens import lens_view
from kotha.server.serial_executor import ProgressResponse
from kotha.server.settings import Limits
from kotha.storage.images import decode_png

IMAGES = np.random.default_rng(0).integers(0, 256, (2, 8, 8), dtype=np.uint8)


def png(pixels: Any) -> str:
    image = pytest.importorskip("PIL.Image", reason="Pillow writes the test's images")
    file = io.BytesIO()
    image.fromarray(pixels).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def library(house: Address, name: str) -> kotha.LanguageModel:
    return kotha.load(house.folder / name, device="cpu")


@pytest.mark.parametrize(
    ("model", "asked"),
    [
        ("gpt", {}),
        ("bert", {}),
        ("bert", {"second": "নদী"}),
        ("seq2seq", {"target": "নদীর ধারে"}),
        ("seq2seq", {}),
    ],
)
def test_attention_is_the_librarys_own(house: Address, model: str, asked: dict[str, Any]) -> None:
    result = ask(house, "inside/attention", model=model, text=TEXT, **asked)
    found = library(house, model).attention(TEXT, **asked).found
    assert [each["name"] for each in result["maps"]] == [each.name for each in found.maps]
    for told, each in zip(result["maps"], found.maps, strict=True):
        assert told["shape"] == list(each.weights.shape) and told["heads"] == list(each.heads)
        torch.testing.assert_close(torch.tensor(told["weights"]), each.weights, atol=1e-6, rtol=0)
        assert len(told["summaries"]) == len(each.heads)
    for line, pieces in found.given.lines.items():
        expected = [{"id": piece.id, "text": piece.text, "part": piece.part} for piece in pieces]
        assert result["lines"][line] == expected
    assert [step["token"] for step in result["steps"]] == [step.token for step in found.steps]
    assert all(step["best"][0]["text"] for step in result["steps"])


def test_some_layers_and_an_image(house: Address) -> None:
    result = ask(house, "inside/attention", model="gpt", text=TEXT, layers=[1])
    assert [each["name"] for each in result["maps"]] == ["blocks.1.attention"]
    pixels = IMAGES[0]
    result = ask(house, "inside/attention", model="vit", image=png(pixels))
    lm = library(house, "vit")
    found = attention_maps(lm.model, read_image(lm.model, pixels[None].astype(np.float32) / 127.5 - 1))
    torch.testing.assert_close(torch.tensor(result["maps"][0]["weights"]), found.maps[0].weights, atol=1e-6, rtol=0)
    assert result["grid"] == [2, 2] and result["lines"]["patches"][0] == {"id": None, "text": "class", "part": False}


def test_alignment_is_the_librarys_own(house: Address) -> None:
    result = ask(house, "inside/alignment", model="seq2seq", text=TEXT, target="নদীর ধারে", layer=0)
    expected = library(house, "seq2seq").alignment(TEXT, target="নদীর ধারে", layer=0).to_dict()
    assert result["weights"] == expected["weights"] and result["strongest"] == expected["strongest"]
    assert [piece["text"] for piece in result["source"]] == expected["source"]
    assert "only a Seq2Seq" in refused(house, "inside/alignment", model="gpt", text=TEXT)


@pytest.mark.parametrize("model", ["gpt", "bert", "seq2seq"])
def test_lens_and_flow_are_the_librarys_own(house: Address, model: str) -> None:
    lm = library(house, model)
    result, expected = ask(house, "inside/lens", model=model, text=TEXT), lm.lens(TEXT).to_dict()
    assert result["question"] == expected["question"] and len(result["layers"]) == len(expected["layers"]) == 3
    for told, layer in zip(result["layers"], expected["layers"], strict=True):
        for mine, position in zip(told["positions"], layer["positions"], strict=True):
            assert [each["id"] for each in mine["best"]] == [each["id"] for each in position["best"]]
            assert mine["kl_nats"] == pytest.approx(position["kl_nats"], abs=1e-5)
    result, expected = ask(house, "inside/flow", model=model, text=TEXT), lm.flow(TEXT).to_dict()
    assert [each["hook_point"] for each in result["stations"]] == [each["hook_point"] for each in expected["stations"]]
    for told, station in zip(result["stations"], expected["stations"], strict=True):
        assert told["norms"] == pytest.approx(station["norms"], rel=1e-4)
    assert result["answers"][0]["best"][0]["text"] == expected["answers"][0]["best"][0]["text"]


def test_an_image_flows_to_classes(house: Address) -> None:
    result = ask(house, "inside/flow", model="vit", image=png(IMAGES[0]))
    assert {each["text"] for each in result["answers"][0]["best"]} == {"0", "1", "2"}
    assert "classes" in refused(house, "inside/lens", model="vit", image=png(IMAGES[0]))


def test_heads_are_studied_as_the_library_does(house: Address) -> None:
    text = TEXT * 6
    result = ask(house, "inside/heads", model="gpt", text=text, tokens=40)
    expected = library(house, "gpt").heads(text, tokens=40).to_dict()
    assert (
        result["loss_nats"] == pytest.approx(expected["loss_nats"], abs=1e-4) and result["tokens"] == expected["tokens"]
    )
    for told, head in zip(result["heads"], expected["heads"], strict=True):
        assert (told["head"], told["kind"], told["evidence"]) == (head["head"], head["kind"], head["evidence"])
        assert told["ablation_nats"] == pytest.approx(head["ablation_nats"], abs=1e-4)
    assert ask(house, "inside/heads", model="bert", text=text, tokens=40)["heads"]
    assert "4,096 or less" in refused(house, "inside/heads", model="gpt", text=text, tokens=4097)
    assert "training data of gpt was not found" in refused(house, "inside/heads", model="gpt")
    assert str(house.folder) not in refused(house, "inside/heads", model="gpt")
    for model in ("seq2seq", "vit"):
        assert "measured on" in refused(house, "inside/heads", model=model, text=text)


def test_head_weights_are_computed_once(serve: Any, families: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = serve(families / "gpt")
    first = ask(alone, "inside/heads", model="gpt", text=TEXT)
    monkeypatch.setattr(np.linalg, "svd", None)  # a second computation would fail
    again, other = (ask(alone, "inside/heads", model="gpt", text=text) for text in (TEXT, TEXT[::-1] * 2))
    assert again == first and other["sharing"] == first["sharing"] and other["loss_nats"] != first["loss_nats"]


def test_all_views_read_a_text_alike(house: Address) -> None:
    studied = ask(house, "inside/heads", model="gpt", text=TEXT)
    silent = ask(house, "inside/silence", model="gpt", text=TEXT, heads=[studied["heads"][0]["head"]])
    assert studied["tokens"] == len(silent["lines"]["tokens"]) - 1 == len(silent["whole"]["nats"])
    assert studied["loss_nats"] == pytest.approx(silent["whole"]["loss_nats"], abs=1e-6)
    worth = silent["without"]["loss_nats"] - silent["whole"]["loss_nats"]
    assert studied["heads"][0]["ablation_nats"] == pytest.approx(worth, abs=1e-5)


def test_a_worksheet_has_all_numbers(house: Address) -> None:
    result = ask(house, "inside/worksheet", model="gpt", text=TEXT, layer=1, head=2)
    expected = library(house, "gpt").worksheet(TEXT, layer=1, head=2).to_dict()
    assert result.keys() == expected.keys()
    for name in ("X", "Q", "scores", "masked", "weights", "output"):
        answer, wanted = (np.array(each[name], dtype=float) for each in (result, expected))
        np.testing.assert_allclose(answer, wanted, atol=1e-5)
    crossed = ask(house, "inside/worksheet", model="seq2seq", text="নদী", target="মা", part="cross")
    assert crossed["place"] == "decoder.0.cross"
    assert "cannot read text" in refused(house, "inside/worksheet", model="vit", text=TEXT)
    assert "this model has no attention module 'blocks.7.attention'" in refused(
        house, "inside/worksheet", model="gpt", text=TEXT, layer=7
    )
    assert "has no head 9" in refused(house, "inside/worksheet", model="gpt", text=TEXT, head=9)


def test_silencing_heads_matches_the_library(house: Address) -> None:
    heads = ["blocks.0.attention.1", "blocks.1.attention.3"]
    result = ask(house, "inside/silence", model="gpt", text=TEXT, heads=heads, generate=3)
    model, tokenizer = library(house, "gpt").gpt
    given = read(model, tokenizer, TEXT)
    whole = given.pass_through(model)[0, -1].softmax(-1)
    with silence(model, heads):
        logits = given.pass_through(model)[0]
    without = logits[-1].softmax(-1)
    for told, chances in ((result["whole"], whole), (result["without"], without)):
        best = told["answers"][0]["best"]
        assert [each["id"] for each in best] == chances.topk(10).indices.tolist()
        assert [each["probability"] for each in best] == pytest.approx(chances.topk(10).values.tolist(), abs=1e-5)
        assert told["loss_nats"] == pytest.approx(np.mean(told["nats"]))
    ids = torch.tensor([piece.id for piece in given.lines["tokens"]])
    expected = torch.nn.functional.cross_entropy(logits[:-1], ids[1:], reduction="none")
    torch.testing.assert_close(torch.tensor(result["without"]["nats"]), expected, atol=1e-4, rtol=1e-4)
    assert not np.allclose(result["whole"]["nats"], result["without"]["nats"])
    assert result["whole"]["written"] and result["without"]["written"]
    again = ask(house, "inside/silence", model="gpt", text=TEXT, heads=heads)
    assert again["whole"] == {**result["whole"], "written": None}, "no effect remains"


def test_every_view_accepts_silenced_heads(house: Address) -> None:
    heads = every_head(library(house, "gpt").model)[:4]
    for path, part in (("attention", "maps"), ("flow", "stations"), ("lens", "positions")):
        plain = ask(house, f"inside/{path}", model="gpt", text=TEXT)
        silent = ask(house, f"inside/{path}", model="gpt", text=TEXT, silenced=heads)
        assert plain[part][0] == silent[part][0] and plain != silent
        assert ask(house, f"inside/{path}", model="gpt", text=TEXT) == plain
        assert "has no head" in refused(
            house, f"inside/{path}", model="gpt", text=TEXT, silenced=["blocks.9.attention.0"]
        )


@pytest.mark.parametrize(("model", "question"), [("bert", "which word is"), ("seq2seq", "what comes next")])
def test_other_families_are_silenced_too(house: Address, model: str, question: str) -> None:
    head = every_head(library(house, model).model)[0]
    result = ask(house, "inside/silence", model=model, text=TEXT, heads=[head])
    assert result["whole"]["answers"][0]["question"].startswith(question) and result["whole"] != result["without"]
    image = ask(house, "inside/silence", model="vit", image=png(IMAGES[1]), heads=["blocks.0.attention.0"])
    assert image["whole"]["answers"] != image["without"]["answers"] and image["whole"]["loss_nats"] is None


@pytest.mark.parametrize("path", ["attention", "lens", "flow", "worksheet", "silence", "alignment"])
def test_long_texts_are_rejected_with_a_message(house: Address, path: str) -> None:
    asked: dict[str, Any] = {"model": "seq2seq" if path == "alignment" else "gpt"}
    asked |= {"heads": ["blocks.0.attention.0"]} if path == "silence" else {}
    for text in (TEXT * 10, "ক" * 300_000):
        assert "more than 32 tokens" in refused(house, f"inside/{path}", text=text, **asked)


def test_large_answers_are_rejected_with_a_message(house: Address, serve: Any) -> None:
    asked = {"model": "gpt", "text": TEXT, "heads": ["blocks.0.attention.1"], "generate": 129}
    assert "generate: it must be 128 or less" in refused(house, "inside/silence", **asked)
    at = serve(house.folder / "gpt", limits=Limits(numbers=100))
    asked = {"model": "gpt", "text": TEXT}
    assert "fewer layers" in refused(at, "inside/attention", **asked)
    assert "shorter text" in refused(at, "inside/worksheet", **asked)


def test_generation_stops_when_the_client_disconnects(house: Address, serve: Any) -> None:
    passes: list[int] = []
    entered, gate = threading.Event(), threading.Event()

    def wait(*_: Any) -> None:
        passes.append(1)
        entered.set()
        gate.wait(30)

    asked = {"model": "gpt", "text": "মা", "generate": 20, "heads": ["blocks.0.attention.0"]}
    at = serve(house.folder / "gpt")
    ask(at, "inside/flow", model="gpt", text="মা")
    model = at.app.state.kotha.registry.opened["gpt"].apart.model
    model.register_forward_pre_hook(wait)
    with pytest.raises(httpx.ReadTimeout):
        http.post(f"{at.url}/api/inside/silence", json=asked, timeout=2)
    assert entered.wait(20)
    for _ in range(2000):
        if 'path="/api/inside/silence",status="499"' in http.get(f"{at.url}/metrics").text:
            break
        threading.Event().wait(0.01)
    gate.set()
    ask(at, "inside/flow", model="gpt", text="মা")  # when the executor runs it
    assert len(passes) <= 2, "the running one, and the flow's own"
    assert not any(block._forward_pre_hooks for block in layers(model).values())


HOSTILE_IMAGES = {
    "no base64": ("%%%", "not valid base64"),
    "not a PNG": (base64.b64encode(b"GIF89a" + b"\0" * 100).decode(), "not a PNG"),
    "empty": ("", "not a PNG"),
    "cut": (None, "cannot be read as an image"),
    "a bomb": (None, "cannot be read as an image"),
    "no pixels": (None, "cannot be read as an image"),
    "too large": ("A" * 2_000_000, "larger than"),
}


@pytest.mark.parametrize("kind", HOSTILE_IMAGES)
def test_hostile_images_are_rejected_with_a_message(house: Address, kind: str) -> None:
    text, result = HOSTILE_IMAGES[kind]
    if text is None:
        data = bytearray(base64.b64decode(png(IMAGES[0])))
        if kind != "cut":
            data[16:24] = (60_000 if kind == "a bomb" else 0).to_bytes(4, "big") * 2
        text = base64.b64encode(data[:40] if kind == "cut" else data).decode()
    asked: dict[str, Any] = {"model": "vit", "image": text}
    assert result in refused(house, "inside/attention", **asked)
    assert result in refused(house, "inside/flow", **asked)


def test_a_png_with_two_sizes_is_not_decoded() -> None:
    """A small size in the first header, a large one in the second."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    def header(size: int) -> bytes:
        return chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 0, 0, 0, 0))

    rows = chunk(b"IDAT", zlib.compress(bytes(101 * 100))) + chunk(b"IEND", b"")
    for first in (header(4), chunk(b"tEXt", struct.pack(">II", 4, 4) + b"k\0" + bytes(20))):
        with pytest.raises(kotha.KothaError, match=r"100 x 100 pixels|cannot be read as an image"):
            decode_png(b"\x89PNG\r\n\x1a\n" + first + header(100) + rows, 8, 1, 4096)
    assert decode_png(b"\x89PNG\r\n\x1a\n" + header(100) + rows, 8, 1, 10_000).shape == (1, 8, 8)


def test_every_truncated_or_changed_png_is_decoded_or_rejected() -> None:
    whole = base64.b64decode(png(IMAGES[0]))
    chance = np.random.default_rng(1)
    damaged = [whole[:length] for length in range(len(whole))]
    for _ in range(300):
        changed = bytearray(whole)
        changed[int(chance.integers(len(whole)))] = int(chance.integers(256))
        damaged.append(bytes(changed))
    for data in damaged:
        try:
            assert decode_png(data, 8, 1, 4096).shape == (1, 8, 8)
        except kotha.KothaError:
            continue


def test_a_text_that_looks_like_a_path_is_a_text(house: Address) -> None:
    assert ask(house, "inside/flow", model="gpt", text="/etc/passwd")["answers"]


def test_a_model_is_described(house: Address) -> None:
    result = http.get(f"{house.url}/api/models/seq2seq").json()
    assert result["family"] == "seq2seq" and result["context_length"] == 48
    assert [site["name"] for site in result["attentions"]] == [
        "encoder.0.attention",
        "encoder.1.attention",
        "decoder.0.attention",
        "decoder.0.cross",
        "decoder.1.attention",
        "decoder.1.cross",
    ]
    assert http.get(f"{house.url}/api/models/vit").json()["labels"] == ["0", "1", "2"]
    assert http.get(f"{house.url}/api/models/nobody").status_code == 404


def test_broken_weights_are_reported(families: Path, tmp_path: Path, serve: Any) -> None:
    opened = bundle.load(families / "gpt")
    with torch.no_grad():
        for parameter in opened.model.parameters():
            parameter.mul_(1e20)  # finite weights with non-finite results
    bundle.save(tmp_path / "broken", opened.model, opened.tokenizer)
    at = serve(tmp_path / "broken")
    for path in ("attention", "lens", "flow", "silence"):
        asked = {"model": "broken", "text": TEXT}
        asked |= {"heads": ["blocks.0.attention.0"]} if path == "silence" else {}
        response = http.post(f"{at.url}/api/inside/{path}", json=asked, timeout=60)
        assert response.status_code == 500 and "weights are damaged" in response.json()["error"]["message"], (
            response.text
        )


def test_generation_continues_during_a_slow_view(house: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that wait for the executor, or for embeddings, do not block others."""
    began, gate = threading.Event(), threading.Event()

    def slow(*given: Any) -> Any:
        began.set()
        assert gate.wait(60)
        return lens_view(*given)

    monkeypatch.setattr("kotha.server.api.inside.lens_view", slow)
    asked = {"model": "gpt", "text": TEXT}
    with ThreadPoolExecutor(40) as pool:
        views = [pool.submit(ask, house, "inside/lens", **asked)]
        assert began.wait(60)
        views += [pool.submit(ask, house, "inside/flow", **asked) for _ in range(20)]
        wanted = {"model": "gpt", "input": TEXT}
        vectors = [pool.submit(httpx.post, f"{house.url}/v1/embeddings", json=wanted, timeout=60) for _ in range(10)]
        written = http.post(f"{house.url}/v1/completions", json={"model": "gpt", "prompt": "মা", "max_tokens": 3})
        assert written.status_code == 200
        assert ask(house, "inside/flow", model="bert", text=TEXT)["answers"], "other models have their own turns"
        with pytest.raises(httpx.ReadTimeout):
            http.post(f"{house.url}/api/inside/lens", json=asked, timeout=0.3)
        assert not any(each.done() for each in (*views, *vectors))
        gate.set()
        assert all(each.result()["family"] == "gpt" for each in views)
        assert all(each.result().status_code == 200 for each in vectors)


def test_the_progress_of_a_study_is_reported(house: Address) -> None:
    nothing = {"stage": "", "done": 0, "total": 0}
    assert http.get(f"{house.url}/api/progress", params={"model": "never-opened"}).json() == nothing
    ask(house, "inside/flow", model="gpt", text="মা")
    turns = house.app.state.kotha.registry.opened["gpt"].turns
    assert http.get(f"{house.url}/api/progress", params={"model": "gpt"}).json() == nothing
    turns.how_far = ProgressResponse("silencing", 3, 8)
    assert http.get(f"{house.url}/api/progress", params={"model": "gpt"}).json() == {
        "stage": "silencing",
        "done": 3,
        "total": 8,
    }
    assert http.get(f"{house.url}/api/progress").json() == nothing, "progress of requests without a model"
    turns.how_far = None
