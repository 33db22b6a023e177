"""Importing: the same ids as in the tokenizer's own library, and errors for malicious files."""

import errno
import io
import json
import os
import shutil
import struct
import tempfile
from functools import cache
from pathlib import Path

import pytest
import sentencepiece
import tokenizers
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import SHARED_DATA
from tests.text.conftest import CORPUS, SENTENCES, trained
from tokenizers import normalizers, pre_tokenizers

from kotha.cli.main import main
from kotha.errors import TokenizerError
from kotha.model.parameters import count_parameters
from kotha.model.presets import preset
from kotha.text.tokenizer import importers, spiece
from kotha.text.tokenizer.importers import import_tokenizer
from kotha.text.tokenizer.tokenizer import Tokenizer

# -- SentencePiece ----------------------------------------------------------------------------------------------------

SPIECE = {
    "unigram": {},
    "unigram bytes": {"byte_fallback": True, "vocab_size": 700},
    "unigram identity": {"normalization_rule_name": "identity"},
    "unigram no prefix": {"add_dummy_prefix": False},
    "unigram spaces kept": {"remove_extra_whitespaces": False},
    "unigram identity, spaces kept, no prefix": {
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "add_dummy_prefix": False,
    },
    "unigram phrases": {"split_by_whitespace": False},
    "unigram nfkc, folded": {"normalization_rule_name": "nfkc_cf"},
    "unigram with symbols": {"user_defined_symbols": ["<sep>", "[নাম]"]},
    "bpe": {"model_type": "bpe"},
    "bpe bytes": {"model_type": "bpe", "byte_fallback": True, "vocab_size": 700},
    "bpe identity": {"model_type": "bpe", "normalization_rule_name": "identity"},
    "bpe no prefix": {"model_type": "bpe", "add_dummy_prefix": False},
    "bpe runs of spaces": {
        "model_type": "bpe",
        "remove_extra_whitespaces": False,
        "allow_whitespace_only_pieces": True,
        "normalization_rule_name": "identity",
    },
}

LINES = [
    *SENTENCES,
    "  দুই  ফাঁক   শেষে ",
    "পড়া \u09aa\u09dc\u09be ক\u09c7\u09be র\u200d্যাব উদ্\u200cযাপন",
    "ＡＢＣ ① ﬁ½ Ⅳ",
    "নদী\tঘাট\nনৌকা",
    "",
    " ",
    "৳৫০০, ৩.১৪%!",
]


@cache
def spiece_bytes(name: str) -> bytes:
    """A tiny SentencePiece model of this kind, trained once."""
    model = io.BytesIO()
    settings = {"model_type": "unigram", "vocab_size": 400, "minloglevel": 2, "hard_vocab_limit": False}
    settings |= {"num_threads": 1} | SPIECE[name]
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(SENTENCES), model_writer=model, **settings)
    return model.getvalue()


@cache
def both(name: str) -> tuple[sentencepiece.SentencePieceProcessor, Tokenizer]:
    """SentencePiece's processor, and the tokenizer imported from its file."""
    theirs = sentencepiece.SentencePieceProcessor(model_proto=spiece_bytes(name))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spiece.model"
        path.write_bytes(spiece_bytes(name))
        return theirs, import_tokenizer(path)


@pytest.mark.parametrize("name", SPIECE)
def test_a_sentencepiece_model_gives_its_own_ids_and_text(name):
    theirs, ours = both(name)
    assert ours.vocab_size == theirs.vocab_size()
    assert ours.kind == name.split()[0]
    for line in LINES:
        ids = theirs.encode(line)
        assert ours.encode(line) == ids, line
        if theirs.unk_id() not in ids:
            assert ours.decode(ids) == theirs.decode(ids)
    assert ours.encode_batch(LINES) == theirs.encode(LINES)


@pytest.mark.parametrize("name", SPIECE)
@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([*" কতনরমা্ে়িঁৗ।,১", "  ", "নদী", "ষ্ট্র", "z", "<", "\n"]), max_size=14).map("".join))
def test_any_bangla_line_gives_the_ids_of_sentencepiece(name, text):
    theirs, ours = both(name)
    assert ours.encode(text) == theirs.encode(text)


@pytest.mark.parametrize("name", ["unigram", "bpe", "unigram bytes"])
def test_roles_and_control_pieces_of_sentencepiece(name):
    theirs, ours = both(name)
    assert ours.special["unk"] == theirs.unk_id()
    assert ours.special["bos"] == theirs.bos_id()
    assert ours.special["eos"] == theirs.eos_id()
    for text in ("<s>", "</s>", "আমি <s> তুমি", "<unk>"):
        assert not {theirs.bos_id(), theirs.eos_id()} & set(ours.encode(text))
    assert ours.decode([theirs.bos_id(), *theirs.encode("নদী"), theirs.eos_id()]) == "নদী"


@pytest.mark.parametrize("name", ["unigram with symbols"])
@pytest.mark.parametrize("text", ["নদী<sep>ঘাট", "নদী <sep> ঘাট", "<sep>নদী", "নদী<sep>", "ক[নাম][নাম]খ", "<sep>"])
def test_user_defined_symbols_are_not_split(name, text):
    theirs, ours = both(name)
    assert ours.encode(text) == theirs.encode(text)


T5_FOLDERS = {
    "by number": ({"tokenizer_config.json": {"tokenizer_class": "T5Tokenizer", "extra_ids": 20}}, 20),
    "by class": ({"tokenizer_config.json": {"tokenizer_class": "T5TokenizerFast"}}, 100),
    "by model": ({"config.json": {"model_type": "t5"}, "tokenizer_config.json": {}}, 100),
    "mT5: none": ({"tokenizer_config.json": {"tokenizer_class": "T5Tokenizer", "extra_ids": 0}}, 0),
    "another": ({"tokenizer_config.json": {"tokenizer_class": "LlamaTokenizer"}}, 0),
    "nothing beside it": ({}, 0),
}


@cache
def t5_bytes() -> bytes:
    """A SentencePiece model with T5's three control pieces, in T5's order, trained once."""
    model = io.BytesIO()
    ids = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    options = {"vocab_size": 400, "hard_vocab_limit": False, "minloglevel": 2, "num_threads": 1, **ids}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_writer=model, **options)
    return model.getvalue()


def t5_folder(folder: Path, files: dict) -> Path:
    """T5's model with settings files."""
    (folder / "spiece.model").write_bytes(t5_bytes())
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return folder


@pytest.mark.parametrize(("files", "number"), T5_FOLDERS.values(), ids=T5_FOLDERS)
def test_t5_sentinels_are_numbered_in_reverse(tmp_path, files, number):
    tokenizer = import_tokenizer(t5_folder(tmp_path, files))
    pieces = sentencepiece.SentencePieceProcessor(str(tmp_path / "spiece.model")).get_piece_size()
    assert tokenizer.vocab_size == pieces + number
    assert tokenizer.pieces[pieces:] == [f"<extra_id_{index}>" for index in reversed(range(number))]


def test_a_t5_folder_has_the_ids_of_transformers_own_tokenizer(tmp_path):
    transformers = pytest.importorskip("transformers")
    folder = t5_folder(tmp_path, {"tokenizer_config.json": {"tokenizer_class": "T5Tokenizer"}})
    theirs, ours = transformers.T5Tokenizer.from_pretrained(folder), import_tokenizer(folder)
    assert ours.vocab_size == len(theirs)
    assert {piece: token for token, piece in enumerate(ours.pieces)} == theirs.get_vocab()
    for text in SENTENCES:
        assert ours.encode(text) == theirs.encode(text, add_special_tokens=False), text


@pytest.mark.parametrize("text", ["</s>", "ক</s>ক", "আমি <extra_id_0> তুমি", "<pad><extra_id_7>", "<unk>"])
def test_a_special_token_in_a_text_is_text_as_in_sentencepiece(tmp_path, text):
    ours = import_tokenizer(t5_folder(tmp_path, {"tokenizer_config.json": {"tokenizer_class": "T5Tokenizer"}}))
    theirs = sentencepiece.SentencePieceProcessor(str(tmp_path / "spiece.model"))
    assert ours.encode(text) == theirs.encode(text)
    assert ours.spells_special(text) and not ours.spells_special("আমি তুমি")
    assert Tokenizer.load(ours.save(tmp_path / "saved")).encode(text) == theirs.encode(text)


def test_a_model_without_settings_gets_the_requested_sentinels(tmp_path):
    folder = t5_folder(tmp_path, {})
    plain, full = import_tokenizer(folder), import_tokenizer(folder / "spiece.model", extra_ids=100)
    assert full.vocab_size == plain.vocab_size + 100
    assert [full.encode(text) for text in SENTENCES] == [plain.encode(text) for text in SENTENCES]
    for source in (plain.save(tmp_path / "saved"), folder):
        with pytest.raises(TokenizerError, match="only SentencePiece models support sentinels"):
            import_tokenizer(source, extra_ids=100 if source != folder else -1)


def test_the_command_line_passes_the_number_of_sentinels_on(tmp_path):
    model = t5_folder(tmp_path, {}) / "spiece.model"
    assert main(["tokenizer", "import", str(model), "--extra-ids", "7", "--out", str(tmp_path / "tok")]) == 0
    assert Tokenizer.load(tmp_path / "tok").vocab_size == import_tokenizer(model).vocab_size + 7


def test_a_shipped_model_with_t5_sentinels_gives_the_58_million_parameters_of_the_course():
    file = SHARED_DATA / "tokenizers" / "csebuetnlp_banglanmt_spm32k" / "bn.model"
    if not file.is_file():
        pytest.skip("needs the shared data")
    tokenizer = import_tokenizer(file, extra_ids=100)
    assert tokenizer.vocab_size == 32_100
    model = preset("bangla-58m").replace(vocab_size=tokenizer.vocab_size)
    assert count_parameters(model).total == 58_139_648


def test_an_imported_model_is_the_same_when_saved(tmp_path):
    for name in ("unigram", "bpe bytes", "unigram identity, spaces kept, no prefix"):
        _, ours = both(name)
        loaded = Tokenizer.load(ours.save(tmp_path / name))
        assert loaded.fingerprint == ours.fingerprint
        assert loaded.encode_batch(LINES) == ours.encode_batch(LINES)
        assert [loaded.decode(ids) for ids in loaded.encode_batch(LINES)] == [
            ours.decode(ours.encode(text)) for text in LINES
        ]


def test_the_fields_of_a_model_file_are_read():
    model = spiece.read_model(spiece_bytes("unigram bytes"))
    assert model.model_type == "unigram"
    assert model.byte_fallback
    assert model.add_dummy_prefix and model.remove_extra_whitespaces and model.charsmap
    assert [kind for _, _, kind in model.pieces[:3]] == [spiece.UNKNOWN, spiece.CONTROL, spiece.CONTROL]
    assert sum(kind == spiece.BYTE for _, _, kind in model.pieces) == 256
    plain = spiece.read_model(spiece_bytes("unigram identity, spaces kept, no prefix"))
    assert not (plain.add_dummy_prefix or plain.remove_extra_whitespaces or plain.charsmap)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model_type": "word", "vocab_size": 60}, "of type word; only unigram and bpe are supported"),
        ({"model_type": "char", "vocab_size": 60}, "of type char; only unigram and bpe are supported"),
        ({"vocab_size": 300, "treat_whitespace_as_suffix": True}, "with spaces after words"),
    ],
)
def test_unsupported_sentencepiece_models_are_rejected(tmp_path, settings, message):
    settings |= {"model_prefix": str(tmp_path / "m"), "hard_vocab_limit": False, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(SENTENCES), **settings)
    with pytest.raises(TokenizerError, match=message):
        import_tokenizer(tmp_path / "m.model")


# -- malicious .model files -------------------------------------------------------------------------------------------


def model_file(tmp_path, data: bytes) -> Path:
    path = tmp_path / "spiece.model"
    path.write_bytes(data)
    return path


def field(number: int, data: bytes | int | float) -> bytes:
    """Encode a protocol buffer field."""
    if isinstance(data, float):
        return bytes([number << 3 | 5]) + struct.pack("<f", data)
    if isinstance(data, int):
        return bytes([number << 3, data])
    return bytes([number << 3 | 2, len(data)]) + data


def piece(text: str, score: float, kind: int) -> bytes:
    return field(1, field(1, text.encode()) + field(2, score) + field(3, kind))


UNKNOWN = piece("<unk>", 0.0, spiece.UNKNOWN)


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=60))
def test_any_bytes_are_read_or_raise_a_tokenizer_error(tmp_path_factory, data):
    for content in (data, UNKNOWN + data):
        try:
            import_tokenizer(model_file(tmp_path_factory.getbasetemp(), content)).encode("আমি")
        except TokenizerError as error:
            assert "spiece.model" in str(error) or "cannot encode" in str(error)


def test_a_truncated_model_is_read_or_raises_a_tokenizer_error(tmp_path):
    """A file truncated between two pieces is a valid smaller vocabulary; any other truncation is detected."""
    whole = spiece_bytes("unigram identity")
    seen = 0
    for end in range(0, len(whole), 41):
        try:
            tokenizer = import_tokenizer(model_file(tmp_path, whole[:end]))
        except TokenizerError as error:
            assert "spiece.model" in str(error)
            seen += 1
        else:
            assert tokenizer.vocab_size < 420
    assert seen > 0.8 * len(range(0, len(whole), 41))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it has no pieces"),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "9223372036854775807 bytes announced at 10"),
        (b"\x0a\xff\xff\xff\xff\x7f" + b"x" * 50, "34359738367 bytes announced"),
        (b"\x0a" + b"\xff" * 30, "a number without an end at byte 11"),
        (b"\x0a\x80", "or truncated"),
        (b"\x0b\x00", "field type 3"),
        (b"\x08\x01", "a bytes-like object is required"),
        (field(1, field(3, b"x")), "cannot be interpreted as an integer"),
        (field(1, field(2, b"12345")), "requires a buffer of 4 bytes"),
        (field(1, field(2, float("nan"))), "a piece with the score nan"),
        (field(1, field(2, float("-inf"))), "a piece with the score -inf"),
        (piece("ক", -1.0, spiece.NORMAL), "has no unknown piece"),
        (UNKNOWN + field(2, field(3, 9)), "a SentencePiece model of type type 9"),
        (UNKNOWN + field(3, field(2, b"\xff\xff")), "cannot be imported as a tokenizer: .*precompiled_charsmap"),
    ],
)
def test_an_inconsistent_model_raises_a_tokenizer_error(tmp_path, data, message):
    with pytest.raises(TokenizerError, match=message) as caught:
        import_tokenizer(model_file(tmp_path, data))
    assert "spiece.model" in str(caught.value)


def test_a_charsmap_that_panics_is_a_tokenizer_error(tmp_path, capfd):
    tokenizer = import_tokenizer(model_file(tmp_path, UNKNOWN + field(3, field(2, b"\0\0\0\0"))))
    with pytest.raises(TokenizerError, match="this tokenizer cannot encode the text: index out of bounds"):
        tokenizer.encode("আমি")
    with pytest.raises(TokenizerError, match="this tokenizer cannot normalize the text: index out of bounds"):
        tokenizer.normalize("আমি")
    capfd.readouterr()  # the panic messages


def test_a_model_by_hand(tmp_path):
    data = UNKNOWN + piece("\u2581ক", -1.0, spiece.NORMAL) + piece("খ", -2.0, spiece.NORMAL)
    tokenizer = import_tokenizer(model_file(tmp_path, data))
    assert tokenizer.encode("কখ খ") == [1, 2, 0, 2]
    assert tokenizer.decode([1, 2]) == "কখ"


# -- tokenizer.json ---------------------------------------------------------------------------------------------------


def test_a_tokenizer_json_is_loaded_unchanged(tokenizer, tmp_path):
    path = tokenizer.save(tmp_path)
    for source in (path, tmp_path, str(path)):
        assert import_tokenizer(source).fingerprint == tokenizer.fingerprint


def test_a_foreign_tokenizer_json_keeps_its_normalization(tmp_path):
    backend = tokenizers.Tokenizer.from_str(trained("bpe-words").backend.to_str())
    backend.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    backend.save(str(tmp_path / "tokenizer.json"))
    tokenizer = import_tokenizer(tmp_path)
    assert tokenizer.normalizer is None
    assert tokenizer.normalize("ＡB অা") == "ab অা"
    assert tokenizer.decode(tokenizer.encode("ＡB অা")) == "ab অা"
    assert tokenizer.encode("ＡB অা") == backend.encode("ＡB অা").ids
    assert [end for *_, end in tokenizer.spans("ＡB")][-1] == 2


# -- vocab.txt --------------------------------------------------------------------------------------------------------

WORDPIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "নদী", "##র", "ঘাট", "##ে", "a", "##b", "।", "é", "e", "日"]


def write_vocab(folder, pieces=WORDPIECES, end="\n", **config):
    (folder / "vocab.txt").write_bytes((end.join(pieces) + end).encode())
    if config:
        (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder / "vocab.txt"


def test_a_vocab_txt_by_hand(tmp_path):
    tokenizer = import_tokenizer(write_vocab(tmp_path))
    assert tokenizer.kind == "wordpiece"
    assert tokenizer.encode("নদীর ঘাটে।") == [5, 6, 7, 8, 11]
    assert tokenizer.decode([2, 5, 6, 7, 8, 11, 3]) == "নদীর ঘাটে ।"
    assert tokenizer.encode("ab A é [CLS]") == [9, 10, 1, 12, 1, 1, 1]
    assert (tokenizer.special["cls"], tokenizer.special["sep"], tokenizer.special["unk"]) == (2, 3, 1)
    assert tokenizer.backend.encode("নদী").ids == [2, 5, 3]


def test_a_vocab_txt_gives_the_ids_of_transformers(tmp_path):
    path = write_vocab(tmp_path)
    theirs = tokenizers.BertWordPieceTokenizer(str(path), lowercase=False, strip_accents=False)
    ours = import_tokenizer(path)
    for line in [*SENTENCES, "নদীর ঘাটে ab 日本 é", "[CLS]x"]:
        if "[" not in line:
            assert ours.encode(line) == theirs.encode(line, add_special_tokens=False).ids


def test_the_settings_of_a_vocab_txt_are_used(tmp_path):
    plain = import_tokenizer(write_vocab(tmp_path))
    assert plain.encode("日a") == [14, 9]
    lower = import_tokenizer(write_vocab(tmp_path, do_lower_case=True, tokenize_chinese_chars=False))
    assert lower.encode("A É") == [9, 13]  # lowercasing also strips accents, as in BERT
    assert lower.encode("日a") == [1]
    kept = import_tokenizer(write_vocab(tmp_path, do_lower_case=True, strip_accents=False))
    assert kept.encode("É") == [12]


def test_windows_line_ends_and_rare_separators_do_not_shift_ids(tmp_path):
    assert import_tokenizer(write_vocab(tmp_path, end="\r\n")).encode("নদীর") == [5, 6]
    odd = [*WORDPIECES[:5], "x\u2028y", "x\x1cy", "নদী"]
    assert import_tokenizer(write_vocab(tmp_path, odd)).encode("নদী") == [7]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"",
            r"vocab\.txt cannot be imported as a tokenizer: there is no \[UNK\] among its 0 lines; is it a WordPiece",
        ),
        ("ক\nখ\n".encode(), r"no \[UNK\] among its 2 lines"),
        (b"[UNK]\n\xff\n", r"vocab\.txt cannot be imported as a tokenizer: 'utf-8' codec can't decode byte 0xff"),
    ],
)
def test_an_invalid_vocab_txt_raises_a_tokenizer_error(tmp_path, content, message):
    (tmp_path / "vocab.txt").write_bytes(content)
    with pytest.raises(TokenizerError, match=message):
        import_tokenizer(tmp_path / "vocab.txt")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("[]", "it is not a JSON object"),
        ("{", r"it is not valid JSON \(Expecting property name"),
        ("[" * 100_000, "maximum recursion depth|Stack overflow"),
    ],
)
def test_invalid_settings_of_a_vocab_txt_raise_a_tokenizer_error(tmp_path, config, message):
    path = write_vocab(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(config, encoding="utf-8")
    with pytest.raises(TokenizerError, match=rf"tokenizer_config\.json is corrupted: {message}"):
        import_tokenizer(path)


# -- vocab.json and merges.txt ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    """GPT-2's two files, trained with the library."""
    folder = tmp_path_factory.mktemp("gpt2")
    trainer = tokenizers.ByteLevelBPETokenizer()
    trainer.train_from_iterator(CORPUS, vocab_size=600, special_tokens=["<|endoftext|>"], show_progress=False)
    trainer.save_model(str(folder))
    return folder


def test_vocab_and_merges_give_the_ids_of_the_library(gpt2):
    theirs = tokenizers.ByteLevelBPETokenizer(str(gpt2 / "vocab.json"), str(gpt2 / "merges.txt"))
    for source in (gpt2, gpt2 / "vocab.json", gpt2 / "merges.txt"):
        ours = import_tokenizer(source)
        for line in LINES:
            assert ours.encode(line) == theirs.encode(line).ids
            assert ours.decode(ours.encode(line)) == line
        assert ours.special["eos"] == 0
        assert 0 not in ours.encode("<|endoftext|>")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("vocab.json", b"[]", "Bad vocabulary json file"),
        ("vocab.json", b"{", "EOF while parsing"),
        ("vocab.json", b"{}", "not a byte-level vocabulary|out of vocabulary"),
        ("vocab.json", b'{"a": "b"}', "not a byte-level vocabulary|out of vocabulary"),
        ("vocab.json", b'{"a": -1}', "Bad vocabulary json file"),
        ("vocab.json", b"\xff", "stream did not contain valid UTF-8"),
        ("merges.txt", b"#version: 0.2\nnospace\n", "Merges text file invalid at line"),
        ("merges.txt", "ক খ\n".encode(), "out of vocabulary"),
        ("merges.txt", b"\xff", "stream did not contain valid UTF-8"),
    ],
)
def test_invalid_vocab_and_merges_raise_a_tokenizer_error(gpt2, tmp_path, name, content, message):
    shutil.copytree(gpt2, tmp_path / "copy")
    (tmp_path / "copy" / name).write_bytes(content)
    with pytest.raises(TokenizerError, match=message):
        import_tokenizer(tmp_path / "copy")


@pytest.mark.parametrize("missing", ["vocab.json", "merges.txt"])
def test_vocab_and_merges_must_both_exist(gpt2, tmp_path, missing):
    shutil.copytree(gpt2, tmp_path / "copy")
    (tmp_path / "copy" / missing).unlink()
    other = {"vocab.json": "merges.txt", "merges.txt": "vocab.json"}[missing]
    with pytest.raises(
        TokenizerError, match=rf"{missing} is missing; vocab\.json and merges\.txt must be in the same folder"
    ):
        import_tokenizer(tmp_path / "copy" / other)


# -- folders, names, the hub ------------------------------------------------------------------------------------------


def test_a_folder_is_searched_for_the_best_file(tmp_path):
    write_vocab(tmp_path)
    assert import_tokenizer(tmp_path).kind == "wordpiece"
    (tmp_path / "spiece.model").write_bytes(spiece_bytes("unigram"))
    assert import_tokenizer(tmp_path).kind == "unigram"
    trained("bpe-words").save(tmp_path)
    assert import_tokenizer(tmp_path).kind == "bpe"


def test_a_folder_with_one_model_of_any_name(tmp_path):
    (tmp_path / "bn.model").write_bytes(spiece_bytes("unigram"))
    assert import_tokenizer(tmp_path).kind == "unigram"
    (tmp_path / "en.model").write_bytes(spiece_bytes("unigram"))
    with pytest.raises(TokenizerError, match=r"contains no tokenizer \(none of tokenizer\.json, spiece\.model, "):
        import_tokenizer(tmp_path)


def test_the_error_for_an_unknown_extension_lists_the_supported(tmp_path):
    (tmp_path / "words.csv").write_text("ক", encoding="utf-8")
    with pytest.raises(TokenizerError, match=r"unknown file extension '\.csv'; supported: \.json, \.model, \.txt"):
        import_tokenizer(tmp_path / "words.csv")


@pytest.mark.parametrize("source", ["nowhere", "./a/b", "/a/b", "~/a", "a/b/c", "a/b.model", "a/tokenizer.json", "a/"])
def test_neither_a_file_nor_a_hub_name_is_an_error(source):
    with pytest.raises(TokenizerError, match=r"no tokenizer at .*; train one with `kotha tokenizer train`, or specify"):
        import_tokenizer(source)


@pytest.fixture
def hub(monkeypatch):
    """A fake hub of local folders by name; a function that returns the list of downloaded files."""
    fetched: list[str] = []

    def of(folders: dict[str, Path]) -> list[str]:
        fetched.clear()
        monkeypatch.setattr(
            importers, "hub_files", lambda name, _: [(path.name, 1) for path in folders[name].iterdir()]
        )
        monkeypatch.setattr(
            importers, "hub_download", lambda name, file, _: fetched.append(file) or folders[name] / file
        )
        return fetched

    return of


@pytest.mark.parametrize("name", ["kotha/tiny", "Qwen/Qwen3.5-0.8B", "owner/v1.0"])
def test_a_hub_name_is_looked_up(tmp_path, name, hub):
    trained("bpe-words").save(tmp_path)
    fetched = hub({name: tmp_path})
    assert import_tokenizer(name).fingerprint == trained("bpe-words").fingerprint
    assert fetched == ["tokenizer.json"]


def test_a_hub_repository_gives_all_files_that_belong_together(gpt2, tmp_path, hub):
    fetched = hub({"a/gpt2": gpt2})
    assert import_tokenizer("a/gpt2").kind == "bpe"
    assert sorted(fetched) == ["merges.txt", "vocab.json"]
    with pytest.raises(TokenizerError, match=r"a/b contains no tokenizer \(none of tokenizer\.json, "):
        hub({"a/b": tmp_path})
        import_tokenizer("a/b")
    write_vocab(tmp_path, do_lower_case=True)
    fetched = hub({"a/bert": tmp_path})
    assert import_tokenizer("a/bert").encode("A") == [9]
    assert sorted(fetched) == ["tokenizer_config.json", "vocab.txt"]


def test_an_unreachable_hub_is_an_error(monkeypatch):
    huggingface_hub = pytest.importorskip("huggingface_hub", reason="the hub's own client is optional (kotha[hub])")

    def refuse(*_, **__):
        raise ConnectionError("no route to host")

    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_tree", refuse)
    with pytest.raises(TokenizerError, match=r"a/b: the hub cannot be reached \(no route"):
        import_tokenizer("a/b")


# -- published models -------------------------------------------------------------------------------------------------


needs_shared = pytest.mark.skipif(
    not SHARED_DATA.is_dir(), reason=f"no shared data at {SHARED_DATA}; KOTHA_SHARED_DATA says where it is"
)


@cache
def news_lines() -> list[str]:
    with zstandard.open(SHARED_DATA / "news" / "validation.jsonl.zst", "rt", encoding="utf-8") as lines:
        return [text for line in lines for text in json.loads(line)["text"].split("\n")]


@needs_shared
@pytest.mark.parametrize("file", ["bnlp_spm50k/bn_spm.model", "csebuetnlp_banglanmt_spm32k/bn.model"])
def test_shipped_models_give_sentencepieces_ids_on_every_line_of_news(file):
    path = SHARED_DATA / "tokenizers" / file
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(path))
    ours = import_tokenizer(path)
    texts = news_lines()
    assert len(texts) > 300
    expected = theirs.encode(texts)
    wrong = [text for text, ids, want in zip(texts, ours.encode_batch(texts), expected, strict=True) if ids != want]
    assert wrong == []
    known = [ids for ids in expected if theirs.unk_id() not in ids]
    assert [ours.decode(ids) for ids in known] == theirs.decode(known)
    assert ours.vocab_size == theirs.vocab_size()


@needs_shared
def test_a_shipped_tokenizer_json_gives_its_own_ids_on_news():
    folder = SHARED_DATA / "tokenizers" / "bangla_bert_base_wordpiece102k"
    theirs = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    theirs.no_truncation()  # the file truncates to BERT's length, which is a property of the model
    theirs.no_padding()
    ours = import_tokenizer(folder)
    texts = news_lines()[:100]
    expected = [encoding.ids for encoding in theirs.encode_batch(texts, add_special_tokens=False)]
    assert ours.encode_batch(texts) == expected
    stream = ours.stream()
    assert "".join([*map(stream.push, expected[0]), stream.finish()]) == ours.decode(expected[0])


def test_a_lone_surrogate_in_a_vocabulary_is_rejected(tmp_path):
    ids = {piece: index for index, piece in enumerate([*pre_tokenizers.ByteLevel.alphabet(), "\ud800"])}
    (tmp_path / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
    (tmp_path / "merges.txt").write_text("#version: 0.2", encoding="utf-8")
    with pytest.raises(TokenizerError, match="cannot be imported as a tokenizer"):
        import_tokenizer(tmp_path)


def test_known_files_of_a_folder_without_list_permission_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained("unigram").save(tmp_path)

    def refuse(self: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    monkeypatch.setattr(Path, "iterdir", refuse)
    assert import_tokenizer(tmp_path).fingerprint == trained("unigram").fingerprint
