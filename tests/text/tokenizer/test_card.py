"""The report card agrees with manual counts."""

import json
import re
from dataclasses import replace

import pytest
import tokenizers
from tests.text.conftest import KINDS, SENTENCES, trained
from tokenizers import decoders, models, pre_tokenizers

from kotha.report.tokenizer_card import cards_page
from kotha.text.tokenizer import card
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.view import view

SAMPLE = "মা রান্নাঘরে <পিঠা> বানাচ্ছেন।"


def by_hand(pieces: list[str]) -> Tokenizer:
    """A tokenizer with a known segmentation into the given pieces, preferring longer pieces."""
    vocabulary = [("<|unk|>", -1000.0), *((piece, -float(index + 1)) for index, piece in enumerate(pieces))]
    backend = tokenizers.Tokenizer(models.Unigram(vocabulary, unk_id=0))
    backend.decoder = decoders.Fuse()
    return Tokenizer(backend)


def test_the_figures_of_a_sentence_by_hand() -> None:
    # ক্ষমা has two aksharas, ক্ষ and মা. Split as ক্ + ষ + মা + space + কর: 5 tokens, 4 boundaries, one of them inside
    # ক্ষ.
    tokenizer = by_hand(["ক্", "ষ", "মা", " ", "কর"])
    found = card.measure("by hand", tokenizer, ["ক্ষমা কর"])
    assert (found.documents, found.words, found.tokens) == (1, 2, 5)
    assert found.tokens_per_word == 2.5
    assert found.bytes_per_token == (7 * 3 + 1) / 5
    assert found.split_aksharas == 1 / 4
    assert found.unknown_rate == 0
    assert found.round_trip == 1


def test_unknowns_and_lost_text_by_hand() -> None:
    found = card.measure("by hand", by_hand(["ক", " "]), ["ক খ", "ক ক"])
    assert found.unknown_rate == 1 / 6
    assert found.round_trip == 1 / 2


def test_partial_characters_count_as_cuts() -> None:
    backend = tokenizers.Tokenizer(
        models.BPE({char: index for index, char in enumerate(pre_tokenizers.ByteLevel.alphabet())}, [])
    )
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    found = card.measure("bytes", Tokenizer(backend), ["কখ"])
    assert found.tokens == 6
    assert found.split_aksharas == 4 / 5  # only one boundary is between the two aksharas


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_gets_a_card(name: str) -> None:
    found = card.measure(name, trained(name), SENTENCES)
    assert found.vocab_size == trained(name).vocab_size
    assert found.kind == trained(name).kind
    assert 0 <= found.split_aksharas <= 1
    if name.startswith(("bpe", "unigram")):
        assert (found.unknown_rate, found.round_trip) == (0, 1)


def test_the_gpt2_baseline_is_worse() -> None:
    ours = card.measure("ours", trained("unigram"), SENTENCES)
    caution = card.measure("gpt2", card.train_gpt2_style(SENTENCES * 4, trained("unigram").vocab_size), SENTENCES)
    assert caution.tokens_per_word > 1.5 * ours.tokens_per_word
    assert caution.split_aksharas > 0.3 > 0.05 > ours.split_aksharas
    assert caution.round_trip == 1


def test_best_and_worst_cells_are_marked() -> None:
    cards = [card.measure("a", trained("unigram"), SENTENCES), card.measure("b", trained("char-codepoint"), SENTENCES)]
    columns = [name for name, _ in card.COLUMNS]
    found = card.marks(cards)
    assert found[0, columns.index("tokens_per_word")] == "best"
    assert found[1, columns.index("tokens_per_word")] == "worst"
    assert (0, columns.index("round_trip")) not in found, "equal values are neither"


def test_cells_that_look_equal_are_neither_best_nor_worst() -> None:
    one = card.measure("a", trained("unigram"), SENTENCES)
    rates = (0.00001, 0.00004, 0.0)
    columns, cards = [name for name, _ in card.COLUMNS], [replace(one, unknown_rate=rate) for rate in rates]
    assert {cells[columns.index("unknown_rate")] for cells in map(card.cells, cards)} == {"0.00%"}
    assert not card.marks(cards)
    found = card.marks([*cards, replace(one, unknown_rate=0.5)])
    assert [found[row, columns.index("unknown_rate")] for row in range(4)] == ["best", "best", "best", "worst"]


def test_the_page_shows_every_tokenizer() -> None:
    loaded = {name: trained(name) for name in ("unigram", "bpe-qwen35")}
    cards = [card.measure(name, tokenizer, SENTENCES) for name, tokenizer in loaded.items()]
    html = cards_page(cards, loaded, SAMPLE, "sixty sentences")
    assert "<পিঠা>" not in html
    result = json.loads(re.search(r'id="data">(.*?)</script>', html, re.DOTALL)[1])["data"]
    assert [each["name"] for each in result["cards"]] == list(loaded)
    for shown, measured in zip(result["cards"], cards, strict=True):
        assert shown["split_aksharas"] == measured.split_aksharas
        assert [each["id"] for each in shown["pieces"]] == loaded[measured.name].encode(SAMPLE)


@pytest.mark.parametrize("name", ["bpe-qwen35", "bpe-words", "unigram"])
def test_view_shows_letters_and_hex_only_for_parts(name: str) -> None:
    tokens = view(trained(name), "মা ডাকছেন 猫")
    parts = [token for token in tokens if token.part]
    assert " ".join(token.text for token in parts) == "E7 8C AB"  # a character that does not occur in the corpus
    assert "".join(token.text for token in tokens if not token.part) == "মা␣ডাকছেন␣"


def test_view_shows_a_lone_sign_on_a_circle() -> None:
    assert view(by_hand(["ক", "া"]), "কা")[1].text == "◌া"
    assert view(by_hand(["ক"]), "খ")[0].text == "‹unknown›"
