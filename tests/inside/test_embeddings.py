"""Embeddings: constructed neighbours, comparison with NumPy, gradients for each row."""

import json
import re

import numpy as np
import pytest
import torch

from kotha.errors import UsageError
from kotha.inside.embeddings import (
    ChangedRows,
    Embeddings,
    embeddings_view,
    nearest_words,
    principal_plane,
    touched_rows,
    word_map,
)
from kotha.model.config import BERTConfig, GPTConfig, ViTConfig
from kotha.model.family import build
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.trainers import train

WORDS = ["মা", "বাবা", "নদী", "পুকুর", "লাল", "নীল", "বই", "খাতা"]
TEXT = " ".join(WORDS * 40)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train([TEXT], "unigram", vocab_size=400)


def model_of(tokenizer: Tokenizer, width: int = 8, **changes: bool):
    torch.manual_seed(0)
    sizes = {"vocab_size": tokenizer.vocab_size, "context_length": 32, "n_layers": 1, "d_model": width, "n_heads": 2}
    return build(GPTConfig(**{**sizes, **changes})).eval()


def row_of(tokenizer: Tokenizer, word: str) -> int:
    (token,) = tokenizer.encode(f" {word}")
    return token


def wired(tokenizer: Tokenizer) -> Embeddings:
    """Each word has its own direction plus a large common component; মা and বাবা are nearly equal."""
    model = model_of(tokenizer, 16)
    with torch.no_grad():
        table = model.tokens.weight
        table.normal_(std=0.01)
        table[:, 15] += 10  # shared
        for place, word in enumerate(WORDS):
            table[row_of(tokenizer, word), place] += 1
        table[row_of(tokenizer, "বাবা")] = table[row_of(tokenizer, "মা")].clone()
        table[row_of(tokenizer, "বাবা"), 1] += 0.1
    return Embeddings(model, tokenizer)


def test_the_hand_made_neighbour_is_found(tokenizer: Tokenizer) -> None:
    table = wired(tokenizer)
    word = table.find("মা")
    assert word.pieces == ("␣মা",)
    near = nearest_words(table, word, count=5)
    assert near[0].text == "বাবা"
    assert near[0].cosine > 0.95
    assert near[1].cosine < 0.5
    assert "মা" not in [each.text for each in near]


def test_subtracting_the_mean_reveals_differences(tokenizer: Tokenizer) -> None:
    table = wired(tokenizer)
    plain = nearest_words(table, table.find("নদী"), count=3, centred=False)
    assert min(each.cosine for each in plain) > 0.98
    assert max(each.cosine for each in nearest_words(table, table.find("নদী"), count=3)) < 0.9


@pytest.mark.parametrize("centred", [True, False])
def test_cosines_match_numpy(tokenizer: Tokenizer, centred: bool) -> None:
    table = wired(tokenizer)
    vectors = table.vectors.numpy()
    mean = vectors[table.rows.numpy()].mean(0) if centred else 0
    a, b = (vectors[row_of(tokenizer, word)] - mean for word in ("মা", "লাল"))
    expected = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
    ours = table.cosines(table.vectors[row_of(tokenizer, "মা")], centred)[table.rows == row_of(tokenizer, "লাল")]
    assert ours.tolist() == pytest.approx([expected], abs=1e-12)


def test_a_word_of_several_pieces_is_their_mean(tokenizer: Tokenizer) -> None:
    table = wired(tokenizer)
    word = table.find("মাখাতা")
    assert len(word.pieces) > 1
    rows = table.vectors.numpy()[list(word.tokens)]
    assert np.allclose(word.vector.numpy(), rows.mean(0))


@pytest.mark.parametrize(("word", "wording"), [("", "the word is empty"), ("☃", "cannot spell “☃”")])
def test_an_invalid_word_is_rejected(tokenizer: Tokenizer, word: str, wording: str) -> None:
    with pytest.raises(UsageError, match=wording):
        wired(tokenizer).find(word)


def test_an_image_model_has_no_words() -> None:
    vit = build(ViTConfig(image_size=4, patch_size=2, n_classes=2, n_layers=1, d_model=4, n_heads=1))
    with pytest.raises(UsageError, match="no token embeddings"):
        Embeddings(vit, None)


def test_the_principal_plane_matches_numpy() -> None:
    vectors = torch.randn(40, 7, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    places, shares = principal_plane(vectors, vectors)
    centred = vectors.numpy() - vectors.numpy().mean(0)
    values, axes = np.linalg.eigh(centred.T @ centred)  # independently: eigenvectors of the covariance, ascending
    expected = centred @ axes[:, ::-1][:, :2]
    assert np.allclose(np.abs(places.numpy()), np.abs(expected))
    assert shares == pytest.approx(tuple(values[::-1][:2] / values.sum()))
    assert all(places[place, axis] > 0 for axis, place in enumerate(places.abs().argmax(0).tolist()))
    again, _ = principal_plane(vectors.flip(0), vectors.flip(0))
    assert torch.allclose(again.flip(0), places)


def test_the_map_has_frequent_and_chosen_words(tokenizer: Tokenizer) -> None:
    table = wired(tokenizer)
    found = word_map(table, [table.find("মা")], count=6)
    assert [dot.text for dot in found.dots if dot.chosen] == ["মা"]
    texts = [dot.text for dot in found.dots]
    assert len(texts) == len(set(texts))
    assert set(texts) <= set(WORDS) | {table.texts[token].strip() for token in table.rows.tolist()}
    assert 0 < sum(found.shares) <= 1 + 1e-9


def test_a_search_moves_no_word_of_the_map(tokenizer: Tokenizer) -> None:
    table = wired(tokenizer)
    plain = {dot.text: (dot.x, dot.y) for dot in word_map(table, [], count=6).dots}
    for word in (*WORDS, "মাখাতা"):
        found = word_map(table, [table.find(word)], count=6)
        for dot in found.dots:
            if dot.text in plain:
                assert (dot.x, dot.y) == pytest.approx(plain[dot.text], abs=1e-5), (word, dot.text)


def test_the_page_escapes_tokens(tokenizer: Tokenizer) -> None:
    table = wired(tokenizer)
    table.texts[row_of(tokenizer, "মা")] = " a<script>"
    view = embeddings_view(table, ["নদী"], count=2, map_words=8, name="<words>")
    found, page = view.found, view.html
    assert "a<script>" not in page and "<words>" not in page
    result = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])["data"]
    assert [(dot["text"], dot["x"]) for dot in result["dots"]] == [(dot.text, dot.x) for dot in found.map.dots]
    (near,) = result["words"]
    assert near["text"] == "নদী" and [each["cosine"] for each in near["neighbours"]] == [
        each.cosine for each in found.words[0].neighbours
    ]


def gradient_rows(model, tokens: list[int]) -> tuple[int, int]:
    """Return the gradients of the two tables after a plain backward pass."""
    logits = model(torch.tensor([tokens[:-1]]))
    torch.nn.functional.cross_entropy(logits[0], torch.tensor(tokens[1:])).backward()
    rows = tuple(int((each.weight.grad != 0).any(1).sum()) for each in (model.tokens, model.head))
    model.zero_grad()
    return rows


@pytest.mark.parametrize("tied", [False, True])
def test_touched_rows_match_autograd(tokenizer: Tokenizer, tied: bool) -> None:
    model, tokens = model_of(tokenizer, tied_head=tied), tokenizer.encode("মা নদী মা বই লাল মা")
    in_table, in_head = gradient_rows(model, tokens)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    found = touched_rows(model, tokens)
    assert (found.token_table.gradient, found.scored, found.tied) == (in_table, in_head, tied)
    assert found.looked_up == found.distinct == len(set(tokens[:-1]))
    assert found.token_table.gradient == (tokenizer.vocab_size if tied else found.distinct)
    assert found.token_table.without_decay == found.token_table.gradient
    assert found.token_table.with_decay == found.token_table.rows == tokenizer.vocab_size
    assert found.position_table == ChangedRows(model.config.context_length, len(tokens) - 1, len(tokens) - 1, 32)
    assert found.looked_up_share == 1.0 if not tied else 0 < found.looked_up_share < 1
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(each.grad is None for each in model.parameters())


def test_touched_rows_need_a_next_token_model(tokenizer: Tokenizer) -> None:
    sizes = {"vocab_size": tokenizer.vocab_size, "context_length": 8, "n_layers": 1, "d_model": 8, "n_heads": 2}
    with pytest.raises(UsageError, match="this model is a bert"):
        touched_rows(build(BERTConfig(**sizes)), [1, 2, 3])
    with pytest.raises(UsageError, match=r"1 token\(s\)"):
        touched_rows(model_of(tokenizer), [1])
