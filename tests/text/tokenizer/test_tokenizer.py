"""The contract for every kind of tokenizer: round trips of text and of the saved file."""

import json
import os
from itertools import pairwise
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.text.conftest import KINDS, SENTENCES, VOCAB_SIZE, adversarial_text, anything, train_kind, trained

from kotha.errors import KothaError, TokenizerError
from kotha.text.tokenizer import special
from kotha.text.tokenizer.tokenizer import Tokenizer

LOSSLESS = ["bpe-qwen35", "bpe-words", "unigram"]
SPECIAL_TEXTS = sorted({*special.GENERATIVE.values(), *special.BERT.values(), "<0x41>", "<0xE0>", "<s>", "</s>"})


@pytest.mark.parametrize("sentence", SENTENCES[::6])
def test_sentences_round_trip(tokenizer, sentence):
    """WordPiece does not keep spaces; all others keep every character."""
    decoded = tokenizer.decode(tokenizer.encode(sentence))
    if tokenizer.kind == "wordpiece":
        decoded, sentence = decoded.replace(" ", ""), sentence.replace(" ", "")
    assert decoded == tokenizer.normalize(sentence)


def test_wordpiece_writes_words_with_single_spaces():
    tokenizer = trained("wordpiece")
    assert tokenizer.decode(tokenizer.encode("  নদীর \n ঘাটে নৌকা")) == "নদীর ঘাটে নৌকা"


@pytest.mark.parametrize("name", LOSSLESS)
@settings(max_examples=300, deadline=None)
@given(text=st.text() | adversarial_text())
def test_any_text_round_trips_normalized_without_unknown_tokens(name, text):
    tokenizer = trained(name)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == tokenizer.normalize(text)
    assert tokenizer.decode(ids, skip_special=False) == tokenizer.normalize(text)
    assert not set(ids) & set(tokenizer.special.values())


@pytest.mark.parametrize("name", LOSSLESS)
@settings(max_examples=100, deadline=None)
@given(text=anything())
def test_any_text_round_trips_unchanged_without_rules(name, text):
    tokenizer = train_kind(name, rules=())
    assert tokenizer.normalize(text) == text
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=80, deadline=None)
@given(texts=st.lists(anything(), max_size=4))
def test_a_batch_equals_its_texts_encoded_one_by_one(name, texts):
    tokenizer = trained(name)
    alone = [tokenizer.encode(text) for text in texts]
    assert tokenizer.encode_batch(texts) == alone
    assert tokenizer.encode_batch([tokenizer.normalize(text) for text in texts], normalized=True) == alone
    assert all(0 <= token < tokenizer.vocab_size for ids in alone for token in ids)


def test_empty_text(tokenizer):
    assert tokenizer.encode("") == []
    assert tokenizer.encode_batch([]) == []
    assert tokenizer.encode_batch([""]) == [[]]
    assert tokenizer.decode([]) == ""
    assert tokenizer.spans("") == []


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=60, deadline=None)
@given(text=anything())
def test_spans_cover_the_text_in_order(name, text):
    tokenizer = trained(name)
    spans = tokenizer.spans(text)
    assert [token for token, _, _ in spans] == tokenizer.encode(text)
    places = [(start, end) for _, start, end in spans]
    for (start, end), (next_start, next_end) in pairwise(places):
        # The bytes of a character, or of a run of unknown characters, share one span; a token may also contain the end
        # of one character and the start of the next.
        assert (next_start, next_end) == (start, end) or (end - 1 <= next_start and end <= next_end)
    if tokenizer.kind != "wordpiece":  # the decoder drops white space
        assert {place for start, end in places for place in range(start, end)} == set(
            range(len(tokenizer.normalize(text)))
        )


# -- special tokens ---------------------------------------------------------------------------------------------------


def test_special_tokens_have_roles_with_distinct_ids(tokenizer):
    roles = special.BERT if tokenizer.kind == "wordpiece" else special.GENERATIVE
    ids = {role: tokenizer.special[role] for role in roles}
    assert len(set(ids.values())) == len(roles)
    assert {role: tokenizer.pieces[token] for role, token in ids.items()} == roles
    # The token that ends a document starts the next.
    assert tokenizer.special["bos"] == tokenizer.special["cls" if tokenizer.kind == "wordpiece" else "eos"]


@pytest.mark.parametrize("text", SPECIAL_TEXTS)
def test_a_special_token_spelled_in_a_text_is_only_text(tokenizer, text):
    allowed = {tokenizer.special["unk"]} if tokenizer.kind in ("char", "wordpiece") else set()
    for document in (text, f"আমি {text} তুমি", f"{text}{text}", f"ক{text}ক"):
        ids = tokenizer.encode(document)
        assert not (set(ids) & set(tokenizer.special.values())) - allowed
        assert tokenizer.encode_batch([document]) == [ids]
        if tokenizer.kind in ("bpe", "unigram"):
            assert tokenizer.decode(ids) == document


def test_a_byte_spelled_in_a_text_is_not_that_byte():
    tokenizer = trained("unigram")
    assert tokenizer.pieces.index("<0x41>") not in tokenizer.encode("<0x41>")
    assert tokenizer.decode(tokenizer.encode("<0x41>")) == "<0x41>"


def test_special_tokens_are_decoded_only_on_request(tokenizer):
    ids = [*tokenizer.encode("আমি"), tokenizer.special["eos"]]
    assert tokenizer.decode(ids) == "আমি"
    shown = tokenizer.decode(ids, skip_special=False)
    assert shown.replace(" ", "") == "আমি" + tokenizer.pieces[tokenizer.special["eos"]]


# -- vocabularies -----------------------------------------------------------------------------------------------------


def test_the_vocabulary_is_at_most_as_large_as_requested(tokenizer):
    assert len(tokenizer.pieces) == tokenizer.vocab_size <= VOCAB_SIZE
    assert len(set(tokenizer.pieces)) == tokenizer.vocab_size
    if tokenizer.kind in ("bpe", "unigram", "wordpiece"):
        assert tokenizer.vocab_size == VOCAB_SIZE


@pytest.mark.parametrize(("name", "kind"), [(name, name.partition("-")[0]) for name in KINDS])
def test_kinds_and_splits_are_recognised(name, kind):
    tokenizer = trained(name)
    assert tokenizer.kind == kind
    assert tokenizer.split_name == {"bpe-qwen35": "qwen35", "bpe-words": "words", "unigram": "words"}.get(name)


@pytest.mark.parametrize("token", [-1, 900, 10**9])
def test_an_id_outside_the_vocabulary_is_refused(tokenizer, token):
    token = max(token, tokenizer.vocab_size) if token > 0 else token
    message = f"token id {token} is outside this vocabulary of {tokenizer.vocab_size:,}"
    with pytest.raises(TokenizerError, match=message):
        tokenizer.decode([token])


def test_ids_can_be_numpy_integers(tokenizer):
    ids = tokenizer.encode(SENTENCES[0])
    assert tokenizer.decode(np.array(ids, dtype=np.uint16)) == tokenizer.decode(ids)


# -- files ------------------------------------------------------------------------------------------------------------


def test_a_saved_tokenizer_is_the_same_when_loaded(tokenizer, tmp_path):
    path = tokenizer.save(tmp_path / "deep" / "er")
    assert path == tmp_path / "deep" / "er" / "tokenizer.json"
    for source in (path, path.parent, str(path)):
        loaded = Tokenizer.load(source)
        assert loaded.fingerprint == tokenizer.fingerprint
        assert loaded.special == tokenizer.special
        assert loaded.encode_batch(SENTENCES) == tokenizer.encode_batch(SENTENCES)
        assert (loaded.normalizer and loaded.normalizer.rules) == (tokenizer.normalizer and tokenizer.normalizer.rules)


def test_a_path_that_ends_in_json_is_the_file_itself(tmp_path):
    for _ in range(2):  # a tokenizer can replace another
        assert trained("unigram").save(tmp_path / "mine.json") == tmp_path / "mine.json"
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(TokenizerError, match=r"config\.json exists and is not a tokenizer"):
        trained("unigram").save(tmp_path / "config.json")


def test_other_libraries_get_the_same_ids_from_the_file(tokenizer, tmp_path):
    """Hugging Face's library gives the same ids from tokenizer.json, including normalization."""
    plain = tokenizers.Tokenizer.from_file(str(tokenizer.save(tmp_path)))
    plain.encode_special_tokens = True
    messy = ["\ufeffর\u200c্যাব\u00a0অাম প\u09dc\u09be\r\n", *SENTENCES, *SPECIAL_TEXTS]
    for text in messy:
        assert plain.encode(text, add_special_tokens=False).ids == tokenizer.encode(text)


def test_fingerprints_differ_between_vocabularies_and_rules():
    prints = [trained(name).fingerprint for name in KINDS]
    prints += [
        train_kind("unigram", vocab_size=VOCAB_SIZE + 1).fingerprint,
        train_kind("unigram", rules=("nfc",)).fingerprint,
        train_kind("unigram", rules=()).fingerprint,
    ]
    assert len(set(prints)) == len(prints)
    assert all(len(text) == 32 for text in prints)


def test_padding_and_truncation_of_a_file_change_nothing(tmp_path):
    backend = tokenizers.Tokenizer.from_str(trained("bpe-words").backend.to_str())
    backend.enable_padding(length=50)
    backend.enable_truncation(3)
    backend.normalizer = tokenizers.normalizers.Lowercase()
    backend.save(str(tmp_path / "tokenizer.json"))
    tokenizer = Tokenizer.load(tmp_path)
    assert 3 < len(tokenizer.encode(SENTENCES[0])) < 50
    assert Tokenizer.load(tokenizer.save(tmp_path / "again")).fingerprint == tokenizer.fingerprint


def test_saving_is_atomic(tmp_path, monkeypatch):
    path = trained("unigram").save(tmp_path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(KothaError, match="could not be written: No space left"):
        trained("bpe-words").save(tmp_path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["tokenizer.json"]


def test_the_error_for_a_missing_file_says_how_to_make_one(tmp_path):
    with pytest.raises(
        TokenizerError, match=r"no tokenizer at .*tokenizer\.json; train one with `kotha tokenizer train`"
    ):
        Tokenizer.load(tmp_path)


# -- malicious files --------------------------------------------------------------------------------------------------


def changed(tmp_path, name="unigram", **changes) -> Path:
    state = json.loads(trained(name).backend.to_str())
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(state[key], dict):
            state[key].update(value)
        else:
            state[key] = value
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(state), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "content",
    [
        *[b"", b"{", b"[]", b"null", b"3", b'"text"', b"{}", b"\x00" * 64, b"[" * 100_000],
        *[b'{"model": 3}', b'{"model": {"type": "BPE"}}'],
        b'{"model": {"merges": 3, "continuing_subword_prefix": "x"}}',
    ],
    ids=lambda content: repr(content[:40]),
)
def test_other_files_raise_a_tokenizer_error(tmp_path, content):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(TokenizerError, match=r"tokenizer\.json is not a valid tokenizer\.json: "):
        Tokenizer.load(path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["model", "normalizer", "pre_tokenizer", "decoder", "added_tokens", "version", "post_processor"]),
    json_values,
)
def test_parts_of_any_shape_are_read_or_raise_a_tokenizer_error(tmp_path_factory, part, value):
    path = changed(tmp_path_factory.mktemp("shape"), **{part: value})
    try:
        Tokenizer.load(path).encode("আমি")
    except TokenizerError as error:
        assert "tokenizer" in str(error)


def test_bad_utf8_is_located(tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(b'{"version": "\xff"}')
    with pytest.raises(TokenizerError, match=r"can't decode byte 0x.. in position 13"):
        Tokenizer.load(path)


@pytest.mark.parametrize(
    "model",
    [
        {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]], "continuing_subword_prefix": "xyz"},
        {"type": "BPE", "vocab": {"a": 0, "é": 1, "aé": 2}, "merges": [["a", "é"]], "continuing_subword_prefix": "x"},
        {"type": "BPE", "vocab": {"a": 0, "é": 1, "aé": 2}, "merges": ["a é"], "continuing_subword_prefix": "x"},
    ],
)
def test_a_merge_that_would_crash_the_process_is_rejected(tmp_path, model):
    """The first panics in Rust; the others abort, which cannot be caught, so they must be rejected before loading."""
    path = changed(tmp_path)
    state = json.loads(path.read_text(encoding="utf-8")) | {"model": model, "added_tokens": []}
    path.write_text(json.dumps(state), encoding="utf-8")
    with pytest.raises(
        TokenizerError, match=r"right side '(b|é)' does not start with 'xy?z?', the continuing_subword_prefix"
    ):
        Tokenizer.load(path)


@pytest.mark.timeout(60)  # must not iterate over all ids below the highest
@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("unigram", {"model": {"unk_id": 10**6}}, "UnkIdNotInVocabulary"),
        ("unigram", {"model": {"vocab": [["a", "b"]]}}, "not a valid tokenizer.json"),
        ("unigram", {"added_tokens": [{"id": -1, "content": "x"}]}, "not a valid tokenizer.json"),
        ("bpe-words", {"model": {"merges": [["no", "such"]]}, "added_tokens": []}, "Token `no` out of vocabulary"),
        (
            "char-codepoint",
            {"model": {"vocab": {"<|unk|>": 0, "a": 2**32 - 1}}, "added_tokens": []},
            "the highest token id is 4,294,967,295; the limit is 16,777,215",
        ),
    ],
)
def test_an_inconsistent_file_is_rejected(tmp_path, name, changes, message):
    with pytest.raises(TokenizerError, match=message):
        Tokenizer.load(changed(tmp_path, name, **changes))


def test_a_panic_of_the_rust_side_is_a_tokenizer_error(tmp_path, capfd):
    """These load, but panic on the first text; pyo3's PanicException is not a subclass of Exception."""
    broken = {
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAAAA=="},
        "pre_tokenizer": {"type": "FixedLength", "length": 0},
    }
    for part, value in broken.items():
        path = changed(tmp_path)
        state = json.loads(path.read_text(encoding="utf-8")) | {part: value}
        path.write_text(json.dumps(state), encoding="utf-8")
        tokenizer = Tokenizer.load(path)
        with pytest.raises(TokenizerError, match="this tokenizer cannot encode the text: "):
            tokenizer.encode("আমি")
        with pytest.raises(TokenizerError, match="this tokenizer cannot encode the texts: "):
            tokenizer.encode_batch(["আমি"])
    capfd.readouterr()  # the panic messages


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError])
def test_an_interruption_is_not_mistaken_for_a_broken_file(tmp_path, monkeypatch, interruption):
    path = trained("unigram").save(tmp_path)
    monkeypatch.setattr(Tokenizer, "__init__", mock.Mock(side_effect=interruption))
    with pytest.raises(interruption):
        Tokenizer.load(path)


def test_ids_with_gaps_are_counted_by_the_highest(tmp_path):
    path = changed(tmp_path, "char-codepoint", model={"vocab": {"<|unk|>": 0, "ক": 7}}, added_tokens=[])
    tokenizer = Tokenizer.load(path)
    assert tokenizer.vocab_size == 8
    assert tokenizer.encode("ক") == [7]
    assert tokenizer.pieces == ["<|unk|>", "", "", "", "", "", "", "ক"]
    assert tokenizer.decode([3, 7, 3]) == "ক"


def test_a_spelled_out_control_piece_of_a_foreign_vocabulary_becomes_unknown(tmp_path):
    """In T5's files, control pieces have the best score."""
    vocabulary = [["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0], ["\u2581", -2.0], ["ক", -3.0]]
    added = [
        {"id": index, "content": text, "special": True}
        | dict.fromkeys(["single_word", "lstrip", "rstrip", "normalized"], False)
        for index, (text, _) in enumerate(vocabulary[:3])
    ]
    path = changed(
        tmp_path,
        model={"vocab": vocabulary, "unk_id": 2, "byte_fallback": False},
        added_tokens=added,
        pre_tokenizer=None,
    )
    tokenizer = Tokenizer.load(path)
    assert tokenizer.encode("ক</s>ক") == [4, 2, 4]
    assert tokenizer.encode_batch(["ক</s>ক"]) == [[4, 2, 4]]
    assert [token for token, _, _ in tokenizer.spans("</s>")] == [2]
    assert tokenizer.special["eos"] == 1


def test_a_lone_surrogate_is_rejected(tokenizer: Tokenizer) -> None:
    with pytest.raises(TokenizerError, match="a lone surrogate"):
        tokenizer.encode("ক\ud800")
