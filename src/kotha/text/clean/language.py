"""Script and language identification.

The script is checked first: letters and their signs are counted by script, and the most frequent script is used.
Bengali script means Bangla, unless more than 1 % of its letters are ৰ or ৱ, which Bangla does not use. In that case, a
text with more ৰ than র is Assamese; any other text, such as Bishnupriya or Meitei, is undetermined. Text in other
scripts is passed to py3langid, a naive Bayes classifier over byte n-grams (Lui and Baldwin 2012). The classifier is far
slower than counting, so it sees only the first few hundred characters. It needs a sentence or two to be reliable.

A text in two scripts is assigned the language of the script with more letters. Bangla in Latin letters is not
recognized.
"""

from collections import Counter
from collections.abc import Iterable
from functools import cache

import numpy as np
import regex
from numpy.typing import NDArray

from kotha.errors import InstallCommand, KothaError, library
from kotha.i18n.message import Message
from kotha.text.clean.shingles import code_points, every_letter

# fmt: off
SCRIPTS = (
    "Bengali", "Latin", "Devanagari", "Arabic", "Cyrillic", "Greek", "Han", "Hangul", "Hiragana", "Katakana",
    "Hebrew", "Armenian", "Georgian", "Ethiopic", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan", "Sinhala", "Tamil",
    "Telugu", "Kannada", "Malayalam", "Gujarati", "Gurmukhi", "Oriya", "Meetei_Mayek", "Ol_Chiki", "Chakma", "Other",
)
# fmt: on
UNDETERMINED = "und"

_SAMPLE_CHARACTERS = 400
_RA, _ASSAMESE_RA, _ASSAMESE_WA = "র", "ৰ", "ৱ"
_FOREIGN_TO_BANGLA = 0.01
# Number of samples of a corpus that are classified.
_MOST_SAMPLES = 50
_NEEDED = Message(
    "the language check needs py3langid; install it with: {command}", command=InstallCommand("", "py3langid")
)


@cache
def _script_table() -> NDArray[np.uint8]:
    """Return, for each code point, its script's index plus one, or 0 if it is not a letter or sign."""
    text = every_letter()
    table = np.zeros(0x110000, dtype=np.uint8)
    for pattern, number in [(r"[\p{L}\p{M}]", len(SCRIPTS))] + [
        (rf"(?V1)[\p{{{script}}}&&[\p{{L}}\p{{M}}]]", number) for number, script in enumerate(SCRIPTS[:-1], 1)
    ]:
        for run in regex.finditer(pattern + "+", text):
            table[run.start() : run.end()] = number
    return table


def _counts(text: str) -> NDArray[np.int64]:
    """Return the number of letters and signs of each script, in the order of SCRIPTS."""
    return np.bincount(_script_table()[code_points(text)], minlength=len(SCRIPTS) + 1)[1:]


def count_scripts(text: str) -> dict[str, int]:
    """Return the number of letters and signs of each script in a text.

    >>> count_scripts("বাংলা and English")
    {'Bengali': 5, 'Latin': 10}
    """
    counts = _counts(text).tolist()
    return {script: count for script, count in zip(SCRIPTS, counts, strict=True) if count}


def language_of(text: str) -> str:
    """Return the language of a text as an ISO 639 code, or "und" if undetermined.

    >>> language_of("আমি বাংলায় গান গাই"), language_of("মই অসমীয়াত কথা পাতোঁ, ৰাতিপুৱা"), language_of("১২৩")
    ('bn', 'as', 'und')
    """
    counts = _counts(text)
    if not counts.any():
        return UNDETERMINED
    if found := _by_bengali_letters(text, counts):
        return found
    classifier = library("py3langid", _NEEDED)
    label, _ = classifier.classify(text.strip()[:_SAMPLE_CHARACTERS])
    return str(label)


def main_language(texts: Iterable[str]) -> str | None:
    """Return the language of more than half of a corpus, or None; each sample is as long as the classifier reads.

    >>> main_language(["আমি বাংলায় গান গাই", "নদীর ধারে একটি গ্রাম"]), main_language(["১২৩"])
    ('bn', None)
    """
    joined = " ".join(texts)
    samples = [joined[start : start + _SAMPLE_CHARACTERS] for start in range(0, len(joined), _SAMPLE_CHARACTERS)]
    samples = samples[:: -(-len(samples) // _MOST_SAMPLES) or 1]
    try:
        found = Counter(language_of(sample) for sample in samples)
    except KothaError:  # the classifier is not installed
        return None
    language, count = next(iter(found.most_common(1)), (UNDETERMINED, 0))
    return language if language != UNDETERMINED and 2 * count > len(samples) else None


def is_language(text: str, wanted: str = "bn") -> bool:
    """Return whether a text is in this language; Bangla and Assamese do not need the classifier."""
    if wanted not in ("bn", "as"):
        return language_of(text) == wanted
    return _by_bengali_letters(text, _counts(text)) == wanted


def _by_bengali_letters(text: str, counts: NDArray[np.int64]) -> str | None:
    """Return the language of a text that is mostly in Bengali script; None for any other text."""
    bengali = int(counts[0])
    if 2 * bengali <= int(counts.sum()):
        return None
    ra, assamese_ra, wa = (text.count(letter) for letter in (_RA, _ASSAMESE_RA, _ASSAMESE_WA))
    if assamese_ra + wa <= _FOREIGN_TO_BANGLA * bengali:
        return "bn"
    return "as" if assamese_ra > ra else UNDETERMINED
