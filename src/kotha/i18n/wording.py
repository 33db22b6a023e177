"""Numbers, sizes and times as a person reads them, in English and in Bangla.

Sizes are decimal, as disks and data sheets have them: 1 GB is 1,000,000,000 bytes. Nothing here is exact; who computes
with a figure takes it from ``--json`` or from Python.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from string import Formatter
from typing import Any

from kotha.i18n.message import Text
from kotha.i18n.numbers import Language, bangla_digits, by_lakh

# What long work says of itself: what it does, how much is done, of how much.
OnProgress = Callable[[Text, int, int], None]

# A unit of time in Bangla, its seconds, and below how many it is used.
# In Bangla, how many seconds it has, and below how many it is told so; days tell all that is longer.
TIMES = {
    **{"second": ("সেকেন্ড", 1, 120), "minute": ("মিনিট", 60, 7200), "hour": ("ঘণ্টা", 3600, 259_200)},
    "day": ("দিন", 86_400, 0),
}


def count(value: float) -> str:
    """A large count.

    >>> [count(value) for value in (950, 24_576_000, 1.5e9)]
    ['950', '24.6 million', '1.5 billion']
    """
    for unit, name in ((1e9, "billion"), (1e6, "million")):
        if value >= unit:
            return f"{value / unit:.3g} {name}"
    return f"{value:,.0f}"


def some_of(names: Sequence[str], most: int = 30) -> str:
    """Names in a row; of very many the first, and how many there are.

    >>> some_of(["a", "b", "c"]), some_of(["a", "b", "c"], most=2)
    ('a, b, c', 'a, b, … (3)')
    """
    return ", ".join(names) if len(names) <= most else f"{', '.join(names[:most])}, … ({len(names):,})"


def counted(number: int, thing: str) -> str:
    """So many of a thing, in English.

    >>> counted(1, "model"), counted(4096, "token")
    ('1 model', '4,096 tokens')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def size(n_bytes: float) -> str:
    """A size in memory or on disk.

    >>> [size(n) for n in (512, 20_480, 231_900_000, 3_207_862_885, 139e9)]
    ['512 bytes', '20.5 kB', '232 MB', '3.2 GB', '139 GB']
    """
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(n_bytes) >= 0.9995 * unit:
            return f"{_short(n_bytes / unit, 100)} {name}"
    return f"{n_bytes:.0f} bytes"


def passes(epochs: float) -> str:
    """How many times through a text; a small part of it is not none of it.

    >>> [passes(epochs) for epochs in (0.0231, 0.5, 3.14, 20)]
    ['0.023', '0.5', '3.1', '20.0']
    """
    return f"{epochs:.2g}" if epochs < 1 else f"{epochs:.1f}"


def duration(seconds: float, language: Language = "en") -> str:
    """How long something takes.

    >>> [duration(seconds) for seconds in (0.04, 1, 8.25, 90, 2460, 11_520, 400_000)]
    ['0.04 seconds', '1 second', '8.2 seconds', '90 seconds', '41 minutes', '3.2 hours', '4.6 days']
    >>> duration(600, "bn")
    '১০ মিনিট'
    """
    name = next((name for name, (_, _, below) in TIMES.items() if seconds < below), "day")
    bangla, unit, _ = TIMES[name]
    amount = f"{seconds:.1g}" if 0 < seconds < 0.1 else _short(seconds / unit, 10)
    if language == "bn":
        return f"{bangla_digits(amount)} {bangla}"
    return f"{amount} {name}{'' if amount == '1' else 's'}"


def _short(value: float, whole_from: float) -> str:
    """One decimal where it says something."""
    return f"{value:,.0f}" if value >= whole_from else f"{value:.1f}".removesuffix(".0")


@dataclass(frozen=True)
class Words:
    """The same said twice."""

    en: str
    bn: str

    def fill(self, **values: Any) -> "Words":
        """With the numbers put in; in Bangla the sentence decides about their digits, and a text stays as it is.

        >>> Words("{n:,} of {what}", "{what}: {n:,}টি").fill(n=8192, what="uint16").bn
        'uint16: ৮,১৯২টি'
        """
        return Words(fill(self.en, "en", values), fill(self.bn, "bn", values))

    def to(self, language: Language) -> str:
        """In one language."""
        return self.bn if language == "bn" else self.en


def fill(template: str, language: Language, values: Mapping[str, Any]) -> str:
    """A template of one language with its numbers put in.

    A Bangla sentence that holds a formula, a shape or code has Latin digits, every other one Bangla digits, by lakh.

    >>> fill("মোট {n:,}টি। {n} = {n} × 1।", "bn", {"n": 2_312_741})
    'মোট ২৩,১২,৭৪১টি। 2312741 = 2312741 × 1।'
    """
    if language != "bn":
        return Formatter().vformat(template, (), values)
    return settled(marked(template, values))


@dataclass(frozen=True)
class Voice:
    """How what a page says is said: sentences, and cells, where numbers have Latin digits. English is as it stands."""

    language: Language = "en"
    sentence: Callable[[str], str] = str
    cell: Callable[[str], str] = str

    def figure(self, text: str) -> str:
        """A number that stands by itself, with the digits of a sentence.

        >>> Voice("bn").figure("58,139,648"), Voice().figure("58,139,648")
        ('৫,৮১,৩৯,৬৪৮', '58,139,648')
        """
        return text if self.language == "en" else settled(marked("{n}", {"n": WrittenNumber(text)}))


class _Reader:
    """For whom pages are written."""

    voice = Voice()


@contextmanager
def pages_said(voice: Voice) -> Iterator[None]:
    """Meanwhile pages are said in a voice: the rooms that write them speak English, and know of no other."""
    before, _Reader.voice = _Reader.voice, voice
    try:
        yield
    finally:
        _Reader.voice = before


def page_voice() -> Voice:
    """The voice of the page that is being written."""
    return _Reader.voice


class WrittenNumber:
    """A number that is written already: who fills it in leaves the kind of its digits to the sentence."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __format__(self, spec: str) -> str:
        return self._text


def marked(template: str, values: Mapping[str, Any]) -> str:
    """A Bangla template with its numbers put in and marked, as a part of a sentence that is still open."""
    return _MarkedNumbers().vformat(template, (), values)


def settled(text: str) -> str:
    """A text whose marked numbers have the digits that their sentences ask for.

    >>> settled(marked("মোট {n}।", {"n": WrittenNumber("2,312,741")}))
    'মোট ২৩,১২,৭৪১।'
    """
    return _SENTENCE.sub(lambda found: _in_one_kind(found[0]), text)


def plain(text: str) -> str:
    """A text whose marked numbers stay as they were written."""
    return _NAMED.sub(lambda found: found[1], _MARKED.sub(lambda found: found[1], text))


def named(text: str) -> str:
    """A name or path to be filled in: its letters, a slash among them, make no formula of the sentence.

    >>> settled(marked("{path}: {n}টি।", {"path": named("runs/a"), "n": 12}))
    'runs/a: ১২টি।'
    """
    return f"{_NAME_BEGIN}{text}{_NAME_END}"


# A sentence ends with its mark, or with the line.
_SENTENCE = re.compile(r"[^।?\n]+[।?\n]*")
# What makes a sentence one of formulas: code, a sign of arithmetic, a shape, a power of ten.
_FORMULA = re.compile(r"[`=×/^√→[\]]|\(\d[\d,]*, |\de[-+]?\d")
# Private code points that no text has, around a number that was filled in.
_BEGIN, _END = "\ue000", "\ue001"
_MARKED = re.compile(f"{_BEGIN}([^{_END}]*){_END}")
_NAME_BEGIN, _NAME_END = "\ue002", "\ue003"
_NAMED = re.compile(f"{_NAME_BEGIN}([^{_NAME_END}]*){_NAME_END}")
_WHOLE = re.compile(r"\d{1,3}(?:,\d{3})+")


def _in_one_kind(sentence: str) -> str:
    """A sentence whose filled-in numbers have the digits that it asks for."""
    if _FORMULA.search(plain(_NAMED.sub("", sentence))):
        return plain(sentence)
    sentence = _NAMED.sub(lambda found: found[1], sentence)
    return _MARKED.sub(lambda found: bangla_digits(_WHOLE.sub(lambda whole: by_lakh(whole[0]), found[1])), sentence)


class _MarkedNumbers(Formatter):
    """Marks the numbers that are filled in, and nothing else."""

    def format_field(self, value: Any, format_spec: str) -> str:
        text: str = super().format_field(value, format_spec)
        return text if isinstance(value, str) else f"{_BEGIN}{text}{_END}"
