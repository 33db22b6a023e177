"""Training: pieces that consist of complete aksharas, reproducible results, and error messages."""

import json
import math
import os
import subprocess
import sys
from collections import Counter

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.text.conftest import ADVERSARIAL, CORPUS, KINDS, SENTENCES, VOCAB_SIZE, boundaries, train_kind, trained
from tokenizers import models

from kotha.errors import TokenizerError, UsageError
from kotha.text.akshara import aksharas, starts_dependent
from kotha.text.normalize import Normalizer
from kotha.text.tokenizer import letters as letters_module
from kotha.text.tokenizer.bpe_and_unigram import character_merges, letter_merges, unigram_pieces
from kotha.text.tokenizer.decoding import byte_alphabet, byte_level
from kotha.text.tokenizer.letters import Letters, count_chunks, most_frequent
from kotha.text.tokenizer.pipeline import WORDS
from kotha.text.tokenizer.trainers import train

WHOLE_LETTERS = ["bpe-qwen35", "bpe-words", "unigram"]


# -- complete aksharas ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=WHOLE_LETTERS)
def roomy(request):
    """A vocabulary large enough for every akshara in the corpus."""
    return train_kind(request.param, vocab_size=2500)


def test_no_token_boundary_falls_inside_a_letter(roomy):
    for text in SENTENCES:
        text = roomy.normalize(text)
        ends = {0, *boundaries(text)}
        inside = [(start, end) for _, start, end in roomy.spans(text) if start not in ends or end not in ends]
        if roomy.split_name == "qwen35":  # it splits before a ZWNJ, and this akshara is not an added token
            inside = [(start, end) for start, end in inside if "\u200c" not in (text[start], text[end])]
        assert inside == [], (text, inside)


@pytest.mark.parametrize("name", WHOLE_LETTERS)
def test_in_a_small_vocabulary_frequent_letters_are_not_split(name):
    """Only the rarest tenth of the aksharas may be split into several tokens."""
    tokenizer = trained(name)
    counts = Counter(letter for text in SENTENCES for letter in aksharas(tokenizer.normalize(text)))
    frequent = {letter for letter, count in counts.items() if count >= 5}
    for text in map(tokenizer.normalize, SENTENCES):
        cuts = {edge for _, start, end in tokenizer.spans(text) for edge in (start, end)}
        start = 0
        for end in boundaries(text):
            if text[start:end] in frequent:
                assert not cuts & set(range(start + 1, end)), (text, text[start:end])
            start = end


def test_dependent_pieces_are_single_code_points(roomy):
    assert [piece for piece in roomy.pieces if starts_dependent(piece) and len(piece) > 1] == []


@pytest.mark.parametrize("name", ["bpe-qwen35", "bpe-words"])
def test_dependent_byte_pieces_are_parts_of_a_letter(name):
    """A byte-level vocabulary has parts of aksharas as intermediate merges, but no word that starts with one."""
    tokenizer = train_kind(name, vocab_size=2500)
    texts = [tokenizer.token_bytes(token).decode("utf-8", "ignore") for token in range(tokenizer.vocab_size)]
    assert [text for text in texts if starts_dependent(text) and len(aksharas("ক" + text)) > 1] == []


def test_every_frequent_code_point_is_at_most_one_token():
    """A joiner that is separated by the split is not an akshara, but is still one token rather than three bytes."""
    for name in WHOLE_LETTERS:
        tokenizer = trained(name)
        for point in sorted({*"".join(SENTENCES)}):
            assert len(tokenizer.encode(f"x{point}")) == 2, (name, ascii(point))


def test_the_ya_phala_of_ra_is_one_token_whatever_the_split():
    for name in WHOLE_LETTERS:
        tokenizer = train_kind(name, vocab_size=2500)
        for text in ("র\u200d্যাব", "আজ র\u200d্যালি", "র\u200d্যা"):
            ends = {0, *boundaries(text)}
            assert all({start, end} <= ends for _, start, end in tokenizer.spans(text)), (name, text)
            assert tokenizer.decode(tokenizer.encode(text)) == text


def test_the_added_ya_phala_is_there_only_if_the_corpus_has_it():
    assert "র\u200d্যা" in trained("bpe-qwen35").pieces
    assert "র\u200d্যা" not in train(["আমি তুমি"] * 9, "bpe", 400).pieces


def test_akshara_level_gives_one_token_per_letter():
    tokenizer = train_kind("char-akshara", vocab_size=2000)
    text = "রাষ্ট্রপতি অ্যাপ খুললেন।"
    assert [tokenizer.pieces[token] for token in tokenizer.encode(text)] == [
        *["রা", "ষ্ট্র", "প", "তি", " ", "অ্যা", "প", " "],
        *["খু", "ল", "লে", "ন", "।"],
    ]
    assert len(tokenizer.encode("জ্ঞৃ")) > 1  # not in the corpus or in a common word: spelled in parts


# None of these words, and few of these aksharas, occur in the training corpus below.
UNSEEN = "বাংলাদেশ ব্যাংক সুদ বৃদ্ধি ঐতিহ্য পৌঁছে শৃঙ্খলা মন্ত্রণালয় র\u200d্যাব ধ্বংস উৎক্ষেপণ ঢাকা ঔষধ হ্যাঁ সংস্কৃতি দুঃখ"
FEW_LETTERS = ["আমার নাম কমল। আমি বাগানে কাজ করি।", "মা রান্না করেন, বাবা মাঠে যান।"] * 20


@pytest.mark.parametrize("kind", ["unigram", "bpe", "wordpiece", "char"])
def test_letters_missing_from_the_corpus_are_not_split_either(kind):
    """Every common Bangla akshara has a piece, whatever the corpus, so that `বৃ│দ্ধ│ি` never occurs."""
    tokenizer = train(FEW_LETTERS, kind, 16_384 if kind == "wordpiece" else 8192, level="akshara")
    ends = {0, *boundaries(UNSEEN)}
    assert [UNSEEN[start:end] for _, start, end in tokenizer.spans(UNSEEN) if not {start, end} <= ends] == []
    assert tokenizer.special["unk"] not in tokenizer.encode(UNSEEN)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_no_long_piece_is_preferred_to_complete_letters(kind):
    """A word from the corpus with an extra sign is split into complete aksharas, not into the word and the sign."""
    tokenizer = train(["অভিনন্দনপত্রলেখকদল নদী"] * 99, kind, 2048)
    text = "অভিনন্দনপত্রলেখকদলে"
    assert {end for _, _, end in tokenizer.spans(text)} <= set(boundaries(text))


def test_a_small_vocabulary_takes_the_most_common_letters_and_leaves_room_for_words():
    few = train(FEW_LETTERS, "unigram", 700)
    assert {"লে", "তা", "হা"} <= set(few.pieces)
    assert not {"শৃ", "দ্ধি"} & set(few.pieces)
    assert any(len(aksharas(piece)) > 3 for piece in few.pieces)


@pytest.mark.parametrize("text", ["the river", "नदी के पार", "১২৩!"])
def test_a_corpus_in_another_script_gets_no_bangla_pieces(text):
    letters = Letters(count_chunks([text], WORDS, Normalizer()))
    assert letters.share_of_bangla() == 0
    letters.keep(1.0, 2000, 1500)
    assert set(letters.code) == set(letters.counts)


def test_a_corpus_that_is_half_bangla_gets_half_of_the_common_letters():
    letters = Letters(Counter({"কমলা": 4, "abc": 4}))
    assert letters.share_of_bangla() == 0.5
    letters.keep(1.0, 2000, 1000)
    assert len(letters.code) == 500 + len("abc")
    letters.keep(1.0, 20, 1000)
    assert len(letters.code) == 20


def test_codepoint_level_gives_one_token_per_code_point():
    tokenizer = trained("char-codepoint")
    assert [tokenizer.pieces[token] for token in tokenizer.encode("মা\n১")] == ["ম", "া", "\n", "১"]
    assert tokenizer.encode("x☃") == [tokenizer.special["unk"]] * 2


# -- reproducibility --------------------------------------------------------------------------------------------------


def test_training_in_another_process_gives_the_same_tokenizers():
    """Hash seeds and thread counts are varied, because nothing may depend on the order of a set or a map."""
    program = (
        "import json, sys; from kotha.text.tokenizer.trainers import train; corpus, kinds, size = json.load(sys.stdin);"
        "print(json.dumps({name: train(corpus, vocab_size=size, **kind).fingerprint for name, kind in kinds.items()}))"
    )
    expected = {name: trained(name).fingerprint for name in KINDS}
    for seed, threads in (("1", "1"), ("2", "4")):
        done = subprocess.run(
            [sys.executable, "-c", program],
            input=json.dumps([CORPUS, KINDS, VOCAB_SIZE]),
            env=os.environ | {"PYTHONHASHSEED": seed, "RAYON_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(done.stdout) == expected


def test_texts_can_be_an_iterator_in_any_order():
    assert train(iter(CORPUS), "bpe", VOCAB_SIZE, split="words").fingerprint == trained("bpe-words").fingerprint
    assert train(CORPUS[::-1], "bpe", VOCAB_SIZE, split="words").fingerprint == trained("bpe-words").fingerprint
    assert train(CORPUS[::-1], "unigram", VOCAB_SIZE).fingerprint == trained("unigram").fingerprint


def test_each_stage_is_reported_at_its_start():
    messages: list[str] = []

    def texts():
        assert messages == ["reading"]
        yield from CORPUS

    train(texts(), "bpe", 400, on_progress=lambda stage, done, total: messages.append(str(stage)))
    assert messages == ["reading", "counting", "learning"]


# -- any corpus -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=25, deadline=None)
@given(texts=st.lists(st.lists(st.sampled_from(ADVERSARIAL), max_size=20).map("".join), min_size=1, max_size=5))
def test_any_corpus_with_a_letter_trains(name, texts):
    texts = [*texts * 2, "া"]
    tokenizer = train(texts, vocab_size=420, **KINDS[name])
    assert tokenizer.vocab_size <= 420
    for text in texts:
        ids = tokenizer.encode(text)
        assert all(token < 420 for token in ids)
        if name in WHOLE_LETTERS:
            assert tokenizer.decode(ids) == tokenizer.normalize(text)


@pytest.mark.parametrize("name", KINDS)
def test_letters_of_absurd_length_fit(name):
    stacks = [f"{base}{chr(0x300 + shift) * 3}{chr(0x310 + shift) * 40}" for shift, base in enumerate("abcdefgকখগ")]
    tokenizer = train([" ".join(stacks)] * 5, vocab_size=400, **KINDS[name])
    assert tokenizer.vocab_size <= 400


@pytest.mark.parametrize("size", [285, 300, 340, 380])
def test_a_bpe_truncated_among_its_letters_keeps_only_valid_merges(size):
    words = ["নদীর ঘাটে স্ত্রী লক্ষ্মী রাষ্ট্র ক্ষ্ম", *SENTENCES]
    tokenizer = train(words * 2, "bpe", size, split="words")
    assert tokenizer.vocab_size <= size
    assert tokenizer.decode(tokenizer.encode("লক্ষ্মী")) == "লক্ষ্মী"


@pytest.mark.parametrize("kind", ["unigram", "bpe", "wordpiece", "char"])
@pytest.mark.parametrize("texts", [[], [""], ["\ufeff", "\u200b"]])
def test_an_empty_corpus_is_an_error(kind, texts):
    with pytest.raises(
        TokenizerError, match="the training text is empty; provide at least one document that contains letters"
    ):
        train(texts, kind)


# -- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "unigrm"}, "kind='unigrm' is not a valid choice; did you mean 'unigram'"),
        ({"kind": "xyz"}, "kind='xyz' is not a valid choice; known: bpe, char, unigram, wordpiece"),
        ({"kind": "char", "level": "aksara"}, "level='aksara' is not a valid choice; did you mean 'akshara'"),
        ({"kind": "bpe", "split": "qwen3"}, "split='qwen3' is not a valid choice; did you mean 'qwen35'"),
        ({"kind": "unigram", "split": "words"}, "split='words' applies only to bpe; unigram uses its own split"),
        (
            {"kind": "bpe", "vocab_size": 100},
            "vocab_size=100 is too small: special tokens, bytes and ASCII already take 266",
        ),
        ({"kind": "unigram", "vocab_size": 256}, "vocab_size=256 is too small: .* already take 364"),
        ({"kind": "wordpiece", "vocab_size": 10}, "vocab_size=10 is too small: .* ASCII"),
        ({"kind": "char", "vocab_size": -5}, "vocab_size=-5 is too small: .* already take 8 entries"),
        *(
            ({"kind": kind, "vocab_size": 10**12}, "vocab_size=1000000000000 must be an integer of at most 1,000,000")
            for kind in ("unigram", "bpe", "wordpiece", "char")
        ),
        ({"vocab_size": math.nan}, "vocab_size=nan must be an integer"),
        ({"vocab_size": "many"}, "vocab_size='many' must be an integer"),
        ({"kind": "char", "level": "akshara", "vocab_size": 100}, "too small: .* already take 108 entries; try 512"),
    ],
)
def test_errors_for_invalid_arguments_say_what_is_allowed(arguments, message):
    with pytest.raises(TokenizerError, match=message):
        train(CORPUS, **arguments)


def test_the_error_for_an_unknown_rule_suggests_the_nearest():
    with pytest.raises(UsageError, match="rules='joiner' is not a valid choice; did you mean 'joiners'"):
        train(CORPUS, rules=("joiner",))


@pytest.mark.parametrize(
    ("name", "size"), [("bpe-words", 280), ("unigram", 380), ("wordpiece", 221), ("char-akshara", 124)]
)
def test_the_smallest_vocabulary_that_is_allowed_works(name, size):
    tokenizer = train_kind(name, vocab_size=size)
    assert tokenizer.vocab_size <= size
    assert tokenizer.encode("নদী")


# -- counting ---------------------------------------------------------------------------------------------------------


def test_chunks_are_counted_after_normalization():
    assert count_chunks(["অাম আম", "আম"], WORDS, Normalizer()) == {"আম": 2, " আম": 1}


def test_memory_stays_flat_whatever_the_corpus(monkeypatch):
    monkeypatch.setattr(letters_module, "_MAX_CHUNKS", 50)
    texts = [f"{chr(0x4E00 + number)} {chr(0x4E00 + number)} নদী" for number in range(300)]
    counts = count_chunks(texts, WORDS, Normalizer())
    assert len(counts) <= 50
    assert counts[" নদী"] == 300


def test_long_numbers_are_split_and_no_piece_spans_the_split():
    """Line breaks among the characters are tested too: the separator must not become one of them."""
    letters = Letters(count_chunks(["123456789\n\n"] * 3, WORDS, Normalizer()))
    letters.keep(1.0, 100, 0)
    assert "\n" in letters.code
    words = {letters.spell(word): count for word, count in letters.coded_words().items()}
    assert words == {"1234": 3, "5678": 3, "9": 3, "\n": 6}


def test_a_rare_or_incomplete_letter_splits_a_word():
    letters = Letters(Counter({"কলাক্": 5, "কমা": 4, "কৌ": 1}))
    letters.keep(0.95, 100, 0)
    words = {letters.spell(word): count for word, count in letters.coded_words().items()}
    assert words == {"কলা": 5, "কমা": 4}


def test_the_most_frequent_are_kept_in_a_stable_order():
    counts = Counter({"খ": 5, "ক": 5, "া": 80, "গ": 1})
    assert most_frequent(counts, 0.95, 10) == ["া", "ক", "খ"]
    assert most_frequent(counts, 1.0, 2) == ["া", "ক"]
    assert most_frequent(counts, 1.0, 10, whole=True) == ["ক", "খ", "গ"]
    assert most_frequent(counts, 1.0, -1) == []


# -- choosing pieces --------------------------------------------------------------------------------------------------


def test_letter_merges_complete_every_letter():
    letters = ["ক্ষ", "ষ্ট্র", "স্ত্রী", "লা", "ক", "ক্ষ্মী", "🇧🇩", "é"]
    merges = character_merges(letters) + letter_merges(letters)
    vocabulary = dict.fromkeys([*byte_alphabet().values(), *map("".join, merges)])
    backend = tokenizers.Tokenizer(models.BPE({piece: index for index, piece in enumerate(vocabulary)}, merges))
    for letter in map(byte_level, letters):
        assert backend.encode(letter).tokens == [letter]


def test_unigram_pieces_are_probabilities_and_keep_every_letter():
    words = Counter({"কখ": 50, "কখগ": 30, "গঘ": 5, "ঘ": 1})
    scores = unigram_pieces(words, 6)
    assert set("কখগঘ") <= set(scores)
    assert len(scores) <= 6
    assert "কখ" in scores
    assert math.isclose(sum(math.exp(score) for score in scores.values()), 1.0)
    assert unigram_pieces(words, 6, letters=["চ"])["চ"] == min(unigram_pieces(words, 6, letters=["চ"]).values())


def test_a_larger_vocabulary_makes_shorter_encodings():
    small, large = train_kind("unigram", vocab_size=700), train_kind("unigram", vocab_size=1500)
    assert sum(map(len, large.encode_batch(SENTENCES))) < sum(map(len, small.encode_batch(SENTENCES)))


def test_no_piece_crosses_a_split():
    for name in ("bpe-words", "unigram"):
        tokenizer = trained(name)
        for token, piece in enumerate(tokenizer.pieces):
            if token not in tokenizer.special.values() and not piece.startswith("<0x"):
                text = tokenizer.token_bytes(token).decode("utf-8", "ignore")
                assert not any(character.isspace() for character in text[1:]), piece


def test_char_without_special_tokens_numbers_the_sorted_characters_of_the_text() -> None:
    text = "To be, or not to be, that is the question."
    tokenizer = train([text], "char", vocab_size=16, specials=False)
    assert tokenizer.pieces == sorted(set(text)) and tokenizer.special == {}
    assert tokenizer.encode(text)[:10] == [3, 10, 0, 5, 6, 1, 0, 10, 12, 0]
    assert tokenizer.decode(tokenizer.encode(text)) == text
    with pytest.raises(TokenizerError, match="a character that this vocabulary lacks"):
        tokenizer.encode("xyz")
    with pytest.raises(TokenizerError, match="only char can do without special tokens; bpe needs them"):
        train([text], "bpe", specials=False)
