"""Streams contain only complete aksharas, and their concatenation equals decoding all tokens at once."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.text.conftest import KINDS, SENTENCES, VOCAB_SIZE, adversarial_text, anything, boundaries, trained
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, pre_tokenizers

from kotha.errors import TokenizerError
from kotha.text.tokenizer.decoding import byte_alphabet, byte_level, starts_with_space
from kotha.text.tokenizer.tokenizer import Tokenizer


def streamed(tokenizer, ids):
    stream = tokenizer.stream()
    return [*(stream.push(token) for token in ids), stream.finish()]


def assert_ends_on_letters(chunks, text):
    ends, position = {0, *boundaries(text)}, 0
    for chunk in chunks:
        position += len(chunk)
        assert position in ends, (chunks, text)


def test_a_vowel_with_ya_extends_to_the_end_of_its_conjunct() -> None:
    """Regression, found by the test below: the hasanta joins the second য to the first."""
    tokenizer = trained("bpe-qwen35")
    text = "অ্যা\u09cdয আ"
    chunks = streamed(tokenizer, tokenizer.encode(text))
    assert "".join(chunks) == tokenizer.normalize(text)
    assert_ends_on_letters(chunks, tokenizer.normalize(text))


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=150, deadline=None)
@given(numbers=st.lists(st.integers(0, VOCAB_SIZE - 1), max_size=20))
def test_any_ids_stream_as_they_decode(name, numbers):
    tokenizer = trained(name)
    ids = [number % tokenizer.vocab_size for number in numbers]
    chunks = streamed(tokenizer, ids)
    text = tokenizer.decode(ids)
    assert "".join(chunks) == text
    assert_ends_on_letters(chunks, text)


@pytest.mark.parametrize("name", ["bpe-qwen35", "bpe-words", "unigram"])
@settings(max_examples=150, deadline=None)
@given(data=st.binary(max_size=16))
def test_lone_bytes_stream_as_they_decode(name, data):
    tokenizer = trained(name)
    alphabet = {byte: f"<0x{byte:02X}>" for byte in range(256)} if name == "unigram" else byte_alphabet()
    ids = [tokenizer.pieces.index(alphabet[byte]) for byte in data]
    chunks = streamed(tokenizer, ids)
    assert "".join(chunks) == tokenizer.decode(ids) == data.decode("utf-8", "replace")
    assert_ends_on_letters(chunks, tokenizer.decode(ids))


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=100, deadline=None)
@given(text=anything() | adversarial_text(30))
def test_any_text_streams_in_complete_aksharas(name, text):
    tokenizer = trained(name)
    ids = tokenizer.encode(text)
    chunks = streamed(tokenizer, ids)
    assert "".join(chunks) == tokenizer.decode(ids)
    assert_ends_on_letters(chunks, tokenizer.decode(ids))


@pytest.mark.parametrize("sentence", SENTENCES[::5])
def test_real_text_streams_in_complete_aksharas(tokenizer, sentence):
    ids = tokenizer.encode(sentence)
    chunks = streamed(tokenizer, ids)
    assert "".join(chunks) == tokenizer.decode(ids)
    assert_ends_on_letters(chunks, tokenizer.decode(ids))
    assert sum(map(bool, chunks)) > 3  # not all text is held back until the end


def test_an_akshara_is_held_back_for_its_signs():
    tokenizer = trained("char-codepoint")
    stream = tokenizer.stream()
    shown = [stream.push(tokenizer.pieces.index(point)) for point in "ক্ষমা অ"]
    assert shown == ["", "", "", "ক্ষ", "", "মা", " "]
    assert stream.finish() == "অ"
    assert stream.finish() == ""


def test_a_vowel_is_held_back_for_its_ya_phala():
    tokenizer = trained("char-codepoint")
    assert streamed(tokenizer, tokenizer.encode("অ্যাপ")) == ["", "", "", "", "অ্যা", "প"]


def test_incomplete_bytes_are_returned_at_the_end():
    tokenizer = trained("bpe-words")
    first = tokenizer.pieces.index(byte_alphabet()["ক".encode()[0]])
    assert streamed(tokenizer, [first]) == ["", "\ufffd"]


def test_special_tokens_are_skipped_and_do_not_split_an_akshara():
    tokenizer = trained("char-codepoint")
    ids = [tokenizer.pieces.index("ক"), tokenizer.special["eos"], tokenizer.pieces.index("া")]
    assert streamed(tokenizer, ids) == ["", "", "", "কা"]


# -- foreign decoders -------------------------------------------------------------------------------------------------


def with_decoder(decoder, pieces):
    """A tokenizer whose file contains these pieces and this decoder."""
    state = json.loads(trained("char-codepoint").backend.to_str())
    state["model"]["vocab"] = {piece: index for index, piece in enumerate(["<|unk|>", *pieces])}
    backend = Backend.from_str(json.dumps({**state, "added_tokens": []}))
    backend.decoder = decoder
    return Tokenizer(backend)


SPACE = "\u2581"
SENTENCEPIECE = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]


@pytest.mark.parametrize(
    ("decoder", "pieces"),
    [
        (decoders.Fuse(), ["ক", "া", " খ"]),
        (decoders.ByteLevel(), [byte_level("ক"), byte_level("ক")[:2], byte_level(" খা")]),
        (decoders.WordPiece(cleanup=False), ["ক", "##া", "খ"]),
        (decoders.WordPiece(prefix="@", cleanup=False), ["ক", "@া", "##খ"]),
        (decoders.Metaspace(), [SPACE + "ক", "া", SPACE + "খ"]),
        (decoders.Metaspace(replacement="_"), ["_ক", "া", "_খ"]),
        (decoders.Metaspace(prepend_scheme="never"), ["ক", "া", SPACE + "খ"]),
        (decoders.Sequence([decoders.Metaspace(prepend_scheme="never")]), [SPACE + "ক", SPACE + "খ"]),
        (decoders.Sequence(SENTENCEPIECE), [SPACE + "ক", "<0xE0>", SPACE]),
        (decoders.Sequence([*SENTENCEPIECE, decoders.Strip(" ", 1, 0)]), [SPACE + "ক", "<0x41>", SPACE]),
        (decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()]), ["ক", "<0x41>", SPACE]),
        (decoders.Sequence([]), ["ক", "<0x41>", SPACE]),
    ],
    ids=str,
)
def test_a_decoder_that_concatenates_decodes_as_its_library_does(decoder, pieces):
    tokenizer = with_decoder(decoder, pieces)
    for ids in ([1, 2, 3 if len(pieces) > 2 else 1], [1, 1], [1]):
        assert tokenizer.decode(ids) == tokenizer.backend.decode(ids)
        assert "".join(streamed(tokenizer, ids)) == tokenizer.decode(ids)


@pytest.mark.parametrize(
    "decoder",
    [
        None,
        decoders.CTC(),
        decoders.BPEDecoder(),
        decoders.Replace("ক", "খ"),
        decoders.Sequence([decoders.Replace("ক", "খ"), decoders.Fuse()]),
        decoders.Sequence([decoders.Strip(" ", 1, 0)]),
        decoders.Sequence([decoders.Fuse(), decoders.Strip(" ", 0, 1)]),
        decoders.Sequence([decoders.Fuse(), decoders.Replace(SPACE, " ")]),
        decoders.Sequence([decoders.ByteLevel(), decoders.Fuse(), decoders.CTC()]),
    ],
    ids=str,
)
def test_any_other_decoder_is_rejected(decoder):
    assert not starts_with_space(None)
    with pytest.raises(
        TokenizerError, match=r"its decoder .* does not decode each token independently; only ByteLevel, WordPiece"
    ):
        with_decoder(decoder, [" ক", " খ ", SPACE])


def test_the_byte_alphabet_is_the_librarys():
    assert sorted(byte_alphabet().values()) == sorted(pre_tokenizers.ByteLevel.alphabet())
    step = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    for text in (" ক্ষ\n", "é\x00\x7f\u00ad", "😀"):
        assert "".join(piece for piece, _ in step.pre_tokenize_str(text)) == byte_level(text)


@pytest.mark.timeout(60)
def test_an_endless_akshara_streams_in_linear_time():
    tokenizer = trained("char-codepoint")
    ids = [tokenizer.pieces.index(point) for point in "ক" + "্" * 100_000 + "ষঅ"]
    assert [chunk for chunk in streamed(tokenizer, ids) if chunk] == [tokenizer.decode(ids[:-1]), "অ"]
