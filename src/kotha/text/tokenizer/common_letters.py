"""The letters of common Bangla, made by rule, the most common first.

A corpus of stories has few of the letters that a newspaper needs. A vocabulary that knows only its corpus spells the
others by code point, and a token then ends inside a letter. So the letters of common Bangla get a piece each, whatever
the corpus.

A letter (akshara) is a consonant or conjunct with an ending: a vowel sign, ং ঃ ঁ, both, or none. The tables say how
common each part is, in bits: one bit more is half as common. The bits of a letter are the sum of its parts', as if the
parts were independent. They are not quite (ৌঁ is rare, but in পৌঁছে), so a last table names letters that the sum
misses, beside those that take no sign; and after a ya-phala, the a of ব্যাংক and অ্যাপ is as common as no sign. The
tables (``common_letters.json``) were read off newspapers, blogs, travel books and Tagore; what they give, by number of
letters: ``docs/experiments.md``.
"""

import json
from functools import cache
from pathlib import Path

_YA_PHALA = "্য"
# What is rarer than this is left to the corpus.
_MOST_BITS = 17


@cache
def common_letters() -> tuple[str, ...]:
    """The letters of common Bangla, the most common first.

    >>> common_letters()[:8]
    ('র', 'রা', 'ন', 'ক', 'ব', 'ল', 'ত', 'ম')
    """
    tables = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    bits = {letter: int(cost) for cost, letters in tables["named"].items() for letter in letters.split()}
    for base_cost, bases in tables["consonants"].items():
        for base in bases.split():
            for cost, texts in tables["ya_phala_endings" if base.endswith(_YA_PHALA) else "endings"].items():
                for ending in texts.split(" "):
                    bits.setdefault(base + ending, int(base_cost) + int(cost))
    return tuple(sorted((letter for letter, cost in bits.items() if cost <= _MOST_BITS), key=bits.__getitem__))
