"""Train a tokenizer: char, bpe, unigram or wordpiece (``bpe_and_unigram.py`` learns the pieces).

All kinds except ``char`` learn pieces of complete letters (aksharas; see ``letters.py``). Common Bangla letters get a
piece even if the corpus lacks them; single code points and bytes are only a fallback. On Bangla news, a plain
SentencePiece unigram model has 3-7 % of its token boundaries within a letter; bpe (byte-pair encoding) and unigram here
have well under 1 %. WordPiece has 2-5 %, and more on text unlike its corpus, because it takes the longest matching
piece, even before a vowel sign.
"""

import string
from collections import Counter
from collections.abc import Iterable
from numbers import Integral
from typing import Literal, get_args

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers, processors

from kotha.errors import TokenizerError
from kotha.i18n.message import Message, OnProgress, Option
from kotha.text.choices import check_choice
from kotha.text.normalize import RULE_NAMES, Normalizer
from kotha.text.parallel.local import WorkerPool
from kotha.text.tokenizer import special
from kotha.text.tokenizer.bpe_and_unigram import (
    character_merges,
    letter_merges,
    unigram_pieces,
    word_merges,
    word_pieces,
)
from kotha.text.tokenizer.decoding import byte_alphabet, byte_level
from kotha.text.tokenizer.letters import Letters, common_letters, count_chunks, most_frequent
from kotha.text.tokenizer.pipeline import CHARACTERS, QWEN35, SPLITS, WORDS, assembled, normalizer_of, splitter_of
from kotha.text.tokenizer.tokenizer import Tokenizer

Kind = Literal["unigram", "bpe", "wordpiece", "char"]
Level = Literal["codepoint", "akshara"]

# Several times the largest vocabularies in use; ``tokenizers`` allocates memory for the requested size, or aborts.
LARGEST_VOCABULARY = 1_000_000
# The share of a corpus covered by letter pieces; the rest is encoded by code point, or by byte if very rare.
_COVERAGE = 0.9999
# Letters take at most 1/2 of a vocabulary, so that scripts with thousands of letters leave room for words.
_LETTER_SHARE = 2
# If a Bangla corpus has fewer letters than this, common Bangla letters are added, up to 1/5 of the vocabulary.
_COMMON_SHARE = 5

# llama.cpp's ``qwen35`` split cuts র‍্যা before its joiner. An added token is matched before the split, in llama.cpp
# too.
_YA_PHALA = ("\u09b0\u200d\u09cd\u09af\u09be", " \u09b0\u200d\u09cd\u09af\u09be")

# The score of special tokens and bytes, so low that the best segmentation never uses one for text that spells its name.
_NEVER = -1000.0
# Penalty for single code points, which are used only where no sequence of complete letters fits.
_OUT = -100.0
_BYTE_PIECES = tuple(f"<0x{byte:02X}>" for byte in range(256))


def train(
    texts: Iterable[str],
    kind: str = "unigram",
    vocab_size: int = 8192,
    *,
    split: str | None = None,
    level: str = "codepoint",
    specials: bool = True,
    rules: tuple[str, ...] = RULE_NAMES,
    on_progress: OnProgress | None = None,
    pool: WorkerPool | None = None,
) -> Tokenizer:
    """Train a tokenizer; the vocabulary can be smaller than ``vocab_size`` if the corpus is small.

    ``split`` applies to bpe (``qwen35``, the default, is supported by llama.cpp; ``words`` keeps numbers and joiners
    together), ``level`` to char (``codepoint`` or ``akshara``), and ``specials=False`` leaves out char's special
    tokens, so that ids start at 0 with the first character; other text then raises an error. ``on_progress`` is called
    at the start of each stage, with a total of 0 (unknown); ``texts`` itself reports progress in reading. A ``pool``
    counts chunks in parallel; pieces are learned in this process, and the result does not depend on the pool.
    """
    report = on_progress or (lambda stage, done, total: None)
    check_choice("kind", kind, get_args(Kind), TokenizerError)
    check_choice("level", level, get_args(Level), TokenizerError)
    check_choice("split", split or "words", SPLITS, TokenizerError)
    if not isinstance(vocab_size, Integral) or vocab_size > LARGEST_VOCABULARY:
        raise TokenizerError(
            "{vocab_size} must be an integer of at most {most:,}",
            vocab_size=Option("vocab_size", vocab_size),
            most=LARGEST_VOCABULARY,
        )
    if split is not None and kind != "bpe":
        raise TokenizerError(
            "{split} applies only to bpe; {kind} uses its own split", split=Option("split", split), kind=kind
        )
    if not specials and kind != "char":
        raise TokenizerError("only char can do without special tokens; {kind} needs them", kind=kind)
    cut = SPLITS[split] if split else (QWEN35 if kind == "bpe" else WORDS)
    report(Message("reading"), 0, 0)
    chunks = count_chunks(texts, cut, Normalizer(rules), pool)
    report(Message("counting"), 0, 0)
    letters = Letters(chunks)
    if not letters.counts:
        raise TokenizerError("the training text is empty; provide at least one document that contains letters")
    report(Message("learning"), 0, 0)
    if kind == "bpe":
        backend = _bpe(letters, vocab_size, cut)
    elif kind == "unigram":
        backend = _unigram(letters, vocab_size)
    elif kind == "wordpiece":
        backend = _wordpiece(letters, vocab_size)
    else:
        build = _code_points if level == "codepoint" else _aksharas
        backend = build(letters, vocab_size, list(special.GENERATIVE.values()) if specials else [])
    if rules:
        backend.normalizer = normalizer_of(rules)
    return Tokenizer(backend)


def _bpe(letters: Letters, vocab_size: int, split: str) -> tokenizers.Tokenizer:
    """Train a byte-level BPE with three layers of merges, which assemble characters, letters and words."""
    base = [*special.GENERATIVE.values(), *byte_alphabet().values()]
    added = _YA_PHALA if split == QWEN35 else ()
    room = _room(vocab_size, len(base) + len(added))
    _keep(letters, room)
    # The added token is needed if it is a kept letter, or if it occurs in the corpus; the split then produces a chunk
    # that starts with its joiner.
    if _YA_PHALA[0] not in letters.code and not any(chunk.startswith(_YA_PHALA[0][1:]) for chunk in letters.chunks):
        added = ()
    points = most_frequent(letters.code_points(), _COVERAGE, room // _LETTER_SHARE)
    merges = character_merges([*letters.code, *points]) + letter_merges(letters.code)
    vocabulary = list(dict.fromkeys([*base, *map("".join, merges)]))[: vocab_size - len(added)]
    learned = word_merges(letters.coded_words(), vocab_size - len(added) - len(vocabulary))
    words = [(byte_level(letters.spell(left)), byte_level(letters.spell(right))) for left, right in learned]
    merges += words
    ids = _numbered([*vocabulary, *map("".join, words)])
    kept = [pair for pair in merges if {*pair, "".join(pair)} <= ids.keys()]
    splitter = splitter_of(split, byte_level=True)
    backend = assembled(models.BPE(ids, kept), special.GENERATIVE.values(), decoders.ByteLevel(), splitter)
    backend.add_tokens([AddedToken(text, normalized=True, special=False) for text in added])
    return backend


def _unigram(letters: Letters, vocab_size: int) -> tokenizers.Tokenizer:
    """Train a unigram model whose pieces are complete letters; code points and bytes score far lower."""
    specials = list(special.GENERATIVE.values())
    taken = len(specials) + len(_BYTE_PIECES) + len(string.printable)
    room = _room(vocab_size, taken)
    _keep(letters, room)
    points = most_frequent(letters.code_points(), _COVERAGE, room // _LETTER_SHARE)
    points = list(dict.fromkeys([*points, *"".join(letters.code)]))[: room // _LETTER_SHARE]
    fallback = [point for point in dict.fromkeys([*string.printable, *points]) if point not in letters.code]
    room = vocab_size - len(specials) - len(_BYTE_PIECES) - len(fallback)
    # Six decimal places, because `tokenizers` does not restore longer decimals exactly.
    scores = {
        letters.spell(piece): round(score, 6)
        for piece, score in unigram_pieces(letters.coded_words(), room, letters.letter).items()
    }
    out = round(min(scores.values(), default=0.0) + _OUT, 6)
    vocabulary = [(piece, _NEVER) for piece in (*specials, *_BYTE_PIECES)]
    vocabulary += sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    vocabulary += [(point, out) for point in sorted(fallback)]
    unknown = specials.index(special.GENERATIVE["unk"])
    model = models.Unigram(vocabulary, unk_id=unknown, byte_fallback=True)
    decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    return assembled(model, specials, decoder, splitter_of(WORDS))


def _wordpiece(letters: Letters, vocab_size: int) -> tokenizers.Tokenizer:
    """Train BERT's WordPiece: the longest piece first, ``##`` before pieces within a word. Spaces are not kept."""
    specials = list(special.BERT.values())
    room = _room(vocab_size, 2 * len(string.printable) + len(specials))
    points = most_frequent(letters.code_points(), _COVERAGE, room // 4)
    words: Counter[str] = Counter()
    for chunk, count in letters.chunks.items():
        for word in chunk.split():
            words[word] += count
    letters = Letters(words)
    _keep(letters, room)
    # A letter missing from the corpus needs two pieces, with and without ##, so only half as many fit.
    n_missing = len(letters.code.keys() - letters.counts.keys())
    common = [letter for letter in common_letters() if letter in letters.code]
    common = common[: min(n_missing, room // _COMMON_SHARE // 2)]
    single = dict.fromkeys(
        text for text in [*string.printable, *points, *common, *"".join(common)] if not text.isspace()
    )
    learned = word_pieces(letters.coded_words(), 2 * vocab_size)
    words_and_parts = (prefix + letters.spell(coded) for prefix, coded in learned)
    ids = _numbered([*specials, *single, *("##" + text for text in single), *words_and_parts], vocab_size)
    model = models.WordPiece(ids, unk_token=special.BERT["unk"], max_input_chars_per_word=100)
    inner = pre_tokenizers.Split(Regex(WORDS.replace("\\s?", "")), "isolated")
    splitter = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), inner])
    backend = assembled(model, specials, decoders.WordPiece(cleanup=False), splitter)
    start, end = special.BERT["cls"], special.BERT["sep"]
    backend.post_processor = processors.TemplateProcessing(
        single=f"{start} $A {end}",
        pair=f"{start} $A {end} $B:1 {end}:1",
        special_tokens=[(start, ids[start]), (end, ids[end])],
    )
    return backend


def _code_points(letters: Letters, vocab_size: int, specials: list[str]) -> tokenizers.Tokenizer:
    """Build a tokenizer with one token per code point; code points that are not in the corpus are unknown."""
    points = sorted(most_frequent(letters.code_points(), 1.0, _room(vocab_size, len(specials))))
    model = models.WordLevel(_numbered([*specials, *points]), unk_token=special.GENERATIVE["unk"])
    return assembled(model, specials, decoders.Fuse(), splitter_of(CHARACTERS))


def _aksharas(letters: Letters, vocab_size: int, specials: list[str]) -> tokenizers.Tokenizer:
    """Build a tokenizer with one token per akshara, as a unigram model with equal scores.

    Rare aksharas are split into as few tokens as possible.
    """
    room = _room(vocab_size, len(specials) + len(string.printable))
    points = dict.fromkeys([*string.printable, *most_frequent(letters.code_points(), 1.0, room // 2)])
    letters.keep(1.0, vocab_size - len(specials) - len(points), room // _COMMON_SHARE)
    kept = [letter for letter in letters.code if letter not in points]
    vocabulary = [(piece, _NEVER) for piece in specials]
    vocabulary += [(piece, -1.0) for piece in [*kept, *points]]
    unknown = specials.index(special.GENERATIVE["unk"]) if specials else None
    return assembled(models.Unigram(vocabulary, unk_id=unknown, byte_fallback=False), specials, decoders.Fuse())


def _keep(letters: Letters, room: int) -> None:
    letters.keep(_COVERAGE, room // _LETTER_SHARE, room // _COMMON_SHARE)


def _numbered(vocabulary: Iterable[str], most: int | None = None) -> dict[str, int]:
    return {piece: index for index, piece in enumerate(list(dict.fromkeys(vocabulary))[:most])}


def _room(vocab_size: int, taken: int) -> int:
    """Return the number of pieces left to learn; raise a TokenizerError if there are fewer than 16."""
    if vocab_size < taken + 16:
        raise TokenizerError(
            "{vocab_size} is too small: special tokens, bytes and ASCII already take {taken} entries; try {size}",
            vocab_size=Option("vocab_size", vocab_size),
            taken=taken,
            size=max(512, 2 * taken),
        )
    return vocab_size - taken
