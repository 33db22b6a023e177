"""The letters of common Bangla, made by rule, the most common first.

A corpus of stories has few of the letters that a newspaper needs. A vocabulary that knows only its corpus spells the
others by code point, and a token then ends inside a letter. So the letters of common Bangla get a piece each, whatever
the corpus.

A letter (akshara) is a consonant or conjunct with an ending: a vowel sign, ং ঃ ঁ, both, or none. The tables say how
common each part is, in bits: one bit more is half as common. The bits of a letter are the sum of its parts', as if the
parts were independent. They are not quite (ৌঁ is rare, but in পৌঁছে), so a last table names letters that the sum
misses, beside those that take no sign. The tables were read off newspapers, blogs, travel books and Tagore; what they
give, by number of letters: ``docs/experiments.md``.
"""

from functools import cache

_CONSONANTS = {
    3: "র",
    4: "ন ক ব ল ত ম",
    5: "স য় দ প হ",
    6: "জ ট শ ছ গ খ চ ভ",
    7: "য থ প্র ড় ধ ণ ফ",
    8: "ষ ড ক্ষ ন্ত ঘ ব্য ঠ ন্য",
    9: "ক্ত ত্র স্থ ঙ্গ স্ত ধ্য ন্দ গ্র র্ব দ্ধ চ্ছ র্ত স্ব ক্র ষ্ট র্ম ত্য",
    10: "র্য ঝ র্থ স্ট ম্প ত্ত ন্ন ন্ট ন্ড ন্ত্র শ্ব ম্ব ষ্ঠ ন্ধ ত্ব ল্প স্য দ্য ম্য র্ক স্ক ঢ প্ত",
    11: "জ্ঞ ক্য শ্র র্ণ ল্ল দ্ব অ্য র্জ র্ট ন্দ্র ঞ্চ ট্র ব্র ল্য দ্র শ্চ ম্ম খ্য ঞ্জ চ্চ শ্য র্শ ঙ ন্স দ্দ ষ্ট্র ক্স র্ড র্ষ স্প ম্ভ ণ্ড",
    12: "র্দ ব্দ জ্য গ্য থ্য র্ন ঙ্ক র্স ন্ম স্ত্র ক্ল র্ভ স্ম স্ট্র ভ্য প্ল র্ঘ শ্ন র্গ ক্ট ট্ট ত্ম হ্য ফ্র চ্য জ্জ ম্প্র র্ধ প্য ক্ষ্য ণ্য",
    13: "র্চ ষ্ক ভ্র ল্ট হ্ব শ্ল ন্ধ্য ট্য জ্ব স্থ্য গ্ন ল্ড ড্র ব্ল ষ্য প্ন ফ্য য্য ঙ্খ ব্ব ক্ক ত্ত্ব স্ন ণ্ট প্ট ন্ব ষ্ণ ন্থ দ্ভ ধ্ব ত্থ ফ্ল",
    14: "র্প স্ফ ণ্ঠ স্র হ্ন র\u200d্য গ্ধ ঢ় স্ল র্ল ব্ধ ত্ন ড্ড গ্ম ক্ষ্ম স্ট্য ম্ন গ্ল র্ধ্ব ন্দ্ব হ্র ল্ক হ্ম",
    15: "ম্র ঙ্ঘ জ্জ্ব খ্র প্ল্য ষ্প ত্স দ্ম থ্র ন্ট্র ঙ্ক্ষ ল্ম স্ক্র ব্র্য প্প গ্র্য ষ্ম ড্য র্ঘ্য ষ্ট্য এ্য শ্ম র্শ্ব",
    16: "ফ্ল্য ট্র্য ঘ্র ন্ঠ ন্দ্য ন্ড্র চ্ছ্ব ত্র্য ঠ্য র্স্ট র্ল্ড ণ্ন ফ্র্য ধ্র ঘ্ন ম্ল দ্র্য ঞ্ছ ক্ষ্ণ",
}
_ENDINGS = {
    1: " ",
    2: "া",
    3: "ে ি",
    5: "ু ো ী",
    7: "ং",
    8: "ূ ৃ াঁ",
    9: "াং",
    10: "িং ৈ ৌ",
    11: "ুঁ",
    12: "েঁ োঁ ঃ ৌঁ",
    13: "িঁ ুঃ িঃ",
}
# After a ya-phala, the a of ব্যাংক and অ্যাপ is as common as no sign.
_YA_PHALA = "্য"
_YA_ENDINGS = {1: "  া", 3: "ে", 5: "ু", 7: "ো ি ং", 8: "াং াঁ"}
_NAMED = {
    6: "ই আ এ ও",
    7: "অ উ",
    8: "০ ১ ২ ৩ ৪ ৫ ৬ ৭ ৮ ৯ ।",
    10: "ৎ",
    12: "ঐ ইং",
    13: "ঈ ঋ অং ব্যাং র্তৃ স্ত্রী",
    14: "ঊ আঁ এঁ আং ৳",
    15: "ঔ উঁ ওঁ এং পৌঁ খুঁ স্কৃ স্মৃ দ্যো দুঃ খোঁ ক্টো ম্পূ ঝুঁ ভ্যু নিঃ ধ্বং ঝাঁ স্ফো স্লো হ্যাঁ দ্ভু খ্রি ক্ষ্মী চ্যু ঠোঁ সিঁ",
    16: "গুঁ স্বৈ ন্তঃ জ্যো স্রো ছোঁ ষ্ণু স্ক্রি ট্যু দ্মা ফোঁ ধোঁ থ্রি ফ্লো ষ্কৃ ঙ্ক্ষা ঘেঁ ম্পৃ ছিঁ ভূঁ ধ্রু র্ভু ব্ধি",
}
# What is rarer than this is left to the corpus.
_MOST_BITS = 17


@cache
def common_letters() -> tuple[str, ...]:
    """The letters of common Bangla, the most common first.

    >>> common_letters()[:8]
    ('র', 'রা', 'ন', 'ক', 'ব', 'ল', 'ত', 'ম')
    """
    bits = {letter: cost for cost, letters in _NAMED.items() for letter in letters.split()}
    for base_cost, bases in _CONSONANTS.items():
        for base in bases.split():
            endings = _YA_ENDINGS if base.endswith(_YA_PHALA) else _ENDINGS
            for cost, texts in endings.items():
                for ending in texts.split(" "):
                    bits.setdefault(base + ending, base_cost + cost)
    return tuple(sorted((letter for letter, cost in bits.items() if cost <= _MOST_BITS), key=bits.__getitem__))
