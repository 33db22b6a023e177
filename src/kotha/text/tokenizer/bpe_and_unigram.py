"""Learn the merges and pieces of a vocabulary; private-use code points represent letters (see ``letters.py``)."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator

import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from kotha.text.tokenizer.decoding import byte_alphabet, byte_level
from kotha.text.tokenizer.letters import CUT

Pair = tuple[str, str]

# The unigram model starts with this multiple of its final number of pieces (1.3 gave better results than 1.05 and 2 for
# both 8,192 and 32,100 pieces) and drops the surplus in this number of steps. Two more steps update only the scores.
_SURPLUS = 1.3
_SHRINKING_STEPS = 4
_SETTLING_STEPS = 2

# The maximum number of repetitions of a word passed to the trainer in one string.
_AT_ONCE = 10_000

# Offset from a letter's private code (plane 15) to its code within a word (plane 16).
_INNER = 0x10000


def character_merges(letters: Iterable[str]) -> list[Pair]:
    """Return the merges that assemble each character from its bytes, from left to right.

    >>> character_merges(["ক"]) == [("à", "¦"), ("à¦", "ķ")]
    True
    """
    alphabet = byte_alphabet()
    merges: dict[Pair, None] = {}
    for character in dict.fromkeys(character for letter in letters for character in letter):
        symbols = [alphabet[byte] for byte in character.encode()]
        for length in range(1, len(symbols)):
            merges["".join(symbols[:length]), symbols[length]] = None
    return list(merges)


def letter_merges(letters: Iterable[str]) -> list[Pair]:
    """Return the merges that assemble each letter from its characters, in the byte alphabet.

    BPE is trained to completion on the letters, each once, so that the merges assemble every letter. These merges come
    before the word merges, so a letter is complete before it is merged with another one.
    """
    spelled = Counter(dict.fromkeys(letters, 1))
    enough = 2 * sum(map(len, spelled)) + 1
    merges = _merges(_trained_bpe(spelled, vocab_size=enough, min_frequency=0))
    return [(byte_level(left), byte_level(right)) for left, right in merges]


def word_merges(words: Counter[str], n_pieces: int) -> list[Pair]:
    """Return the merges that combine letters into ``n_pieces`` larger pieces, in private codes."""
    if n_pieces <= 0:
        return []
    alphabet = {code for word in words for code in word}
    return _merges(_trained_bpe(words, vocab_size=len(alphabet) + n_pieces))


def unigram_pieces(words: Counter[str], n_pieces: int, letters: Iterable[str] = ()) -> dict[str, float]:
    """Return pieces with log-probabilities: BPE candidates, selected by their use in the best segmentation.

    The method is Kudo's, with two changes that gave better results: the candidates are a BPE vocabulary rather than all
    frequent substrings, and a piece's score is how often the best segmentation uses it (hard rather than soft counts).
    Single letters are always kept.
    """
    if not words:
        return {}
    letters = sorted({*letters, *(code for word in words for code in word)})
    proposal = _trained_bpe(words, vocab_size=max(int(_SURPLUS * n_pieces), len(letters) + 1))
    candidates = [piece for piece in proposal.get_vocab() if len(piece) > 1]
    spelled = list(words)
    counts = _usage(proposal, spelled, words)
    scores: dict[str, float] = {}
    surplus = max(0, len(letters) + len(candidates) - n_pieces)
    for step in range(1, _SHRINKING_STEPS + _SETTLING_STEPS + 1):
        size = n_pieces + round(surplus * max(0.0, 1 - step / _SHRINKING_STEPS))
        candidates = sorted(candidates, key=lambda piece: (-counts[piece], piece))[: max(0, size - len(letters))]
        # Each count is increased by 0.5, so that an unused piece keeps a nonzero probability.
        used = {piece: counts[piece] + 0.5 for piece in [*letters, *candidates]}
        total = sum(used.values())
        scores = {piece: math.log(count / total) for piece, count in used.items()}
        model = models.Unigram([("", min(scores.values())), *scores.items()], unk_id=0)
        counts = _usage(tokenizers.Tokenizer(model), spelled, words)
    return scores


def word_pieces(words: Counter[str], n_pieces: int) -> Iterator[tuple[str, str]]:
    """Yield WordPiece's pieces, most useful first: ("", piece) at the start of a word, ("##", piece) within a word."""
    inner = {ord(code): ord(code) + _INNER for word in words for code in word}
    outer = {code: plain for plain, code in inner.items()}
    # The trainer's prefix option is not used: it numbers prefixed symbols in hash-map order, so ties are random.
    marked = Counter({word[0] + word[1:].translate(inner): count for word, count in words.items()})
    backend = _trained_bpe(marked, vocab_size=n_pieces)
    for piece, _ in sorted(backend.get_vocab().items(), key=lambda item: item[1]):
        yield ("##" if ord(piece[0]) in outer else ""), piece.translate(outer)


def _usage(backend: tokenizers.Tokenizer, spelled: list[str], words: Counter[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for word, encoding in zip(spelled, backend.encode_batch(spelled), strict=True):
        for piece in encoding.tokens:
            counts[piece] += words[word]
    return counts


def _trained_bpe(words: Counter[str], vocab_size: int, min_frequency: int = 2) -> tokenizers.Tokenizer:
    """Train the BPE of ``tokenizers`` on words with counts."""
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Split(CUT, "removed")
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, min_frequency=min_frequency, show_progress=False)
    backend.train_from_iterator(_repeated(words), trainer)
    return backend


def _merges(backend: tokenizers.Tokenizer) -> list[Pair]:
    return [(left, right) for left, right in json.loads(backend.to_str())["model"]["merges"]]


def _repeated(words: Counter[str]) -> Iterator[str]:
    """Yield each word as often as it occurs, because the trainers in ``tokenizers`` accept text, not counts."""
    for word, count in words.items():
        for start in range(0, count, _AT_ONCE):
            yield CUT.join([word] * min(_AT_ONCE, count - start))
