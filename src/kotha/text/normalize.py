"""Text normalization: text that looks identical gets the same encoding.

In real Bangla text, য় has two encodings, some joiners have no effect, and signs occur in orders that look the same but
tokenize differently. The canonical form is Unicode's NFC, followed by the named rules below. A rule is a pattern and
its replacement, written with explicit code points. The same rules are applied here (with counts) and in
``tokenizer.json`` (for other tools); tests check that the results match.

The rules do not change danda look-alikes, digits, quotes, meaningful joiners (র‍্যা, hasanta + ZWNJ, emoji sequences,
other scripts' joiners), or double spaces.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import regex

from kotha.text.choices import check_choice

_VOWEL_SIGNS = "\u09be-\u09c4\u09c7\u09c8\u09cb\u09cc\u09d7"
_JOINERS = "\u200c\u200d"


@dataclass(frozen=True)
class Rule:
    """A rewrite rule: for each pair, every match of the pattern is replaced."""

    name: str
    help: str
    pairs: tuple[tuple[str, str], ...]


# The order matters: deletions come first, because they make other characters adjacent, and ব় becomes র before the
# joiner rules.
RULES: tuple[Rule, ...] = (
    Rule(
        "invisible",
        "delete invisible characters: BOM, zero-width space, soft hyphen, control codes",
        (("[\u0000-\u0008\u000e-\u001f\u007f-\u0084\u0086-\u009f\u00ad\u200b\u2060\ufeff]", ""),),
    ),
    Rule(
        "spaces",
        "replace every kind of space with a space and every line end with a newline",
        (("\r\n?|[\u000b\u000c\u0085\u2028\u2029]", "\n"), ("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]", " ")),
    ),
    Rule("ba_nukta", "write ব + nukta as র", (("\u09ac\u09bc", "\u09b0"),)),
    Rule(
        "ya_phala",
        "write the joiner of র‍্য as ZWJ",
        ((f"\u09b0(?!\u200d\u09cd)[{_JOINERS}]+(?=\u09cd\u09af)", "\u09b0\u200d"),),
    ),
    Rule("khanda_ta", "write the old ত + hasanta + ZWJ as ৎ", (("\u09a4\u09cd\u200d+(?!\u200c)", "\u09ce"),)),
    Rule(
        "joiners",
        "delete ZWJ and ZWNJ where they have no effect; keep one where they do",
        (
            (f"(?<=[{_JOINERS}])[{_JOINERS}]+", ""),
            # A joiner has no effect at the start or after a space, ASCII, punctuation or a Bangla letter. It has an
            # effect after a hasanta and before the ya-phala of র‍্য.
            (
                "(?<![^\u0000-\u0040\\[-\u0060\u007b-\u00bf\u0964\u0965\u0980-\u09cc\u09ce-\u09ff\u2000-\u200b\u200e-\u206f])"
                f"(?:(?<!\u09b0)[{_JOINERS}]|(?<=\u09b0)(?:\u200c|\u200d(?!\u09cd\u09af)))",
                "",
            ),
        ),
    ),
    Rule(
        "sign_order",
        "put chandrabindu after the vowel sign: তঁার becomes তাঁর",
        # One pair for each sign, because replacements in `tokenizers` do not support groups.
        tuple(
            (f"(?<![{_VOWEL_SIGNS}\u0981])\u0981{sign}(?![{_VOWEL_SIGNS}\u0981])", f"{sign}\u0981")
            for sign in "\u09be\u09bf\u09c0\u09c1\u09c2\u09c7\u09c8\u09cb\u09cc"
        ),
    ),
    Rule(
        "repeated_signs",
        "delete a repeated hasanta, nukta or chandrabindu, which is invisible",
        (("\u09cd{2,}", "\u09cd"), ("\u09bc{2,}", "\u09bc"), ("\u0981{2,}", "\u0981")),
    ),
    Rule("a_kar", "write অ + া as আ", (("\u0985\u09be", "\u0986"),)),
)

NFC = "nfc"
RULE_NAMES: tuple[str, ...] = (NFC, *(rule.name for rule in RULES))

# A rule can create a match for an earlier one, so the rules run twice; tests check that a third pass changes nothing.
ROUNDS = 2


# Most text needs no change: ASCII, Bangla without precomposed nukta letters, and common punctuation, ...
_PLAIN = re.compile("[\t\n -~\u0964\u0965\u0980-\u09db\u09de\u09e0-\u09fb\u2013\u2014\u2018\u2019\u201c\u201d\u2026]*")
# ... without any of these pairs, which NFC would compose or reorder, or which match a rule.
_PAIRS = (
    *("\u09c7\u09be", "\u09c7\u09d7", "\u09cd\u09bc", "\u09cd\u09cd", "\u09bc\u09bc", "\u0985\u09be", "\u09ac\u09bc"),
    *("\u0981" + sign for sign in "\u0981\u09be\u09bf\u09c0\u09c1\u09c2\u09c7\u09c8\u09cb\u09cc"),
)


def is_plain(text: str) -> bool:
    """Return whether a quick check shows that normalization leaves a text unchanged; if False, it may change.

    >>> is_plain("নদীর ধারে"), is_plain("তঁার")
    (True, False)
    """
    return _PLAIN.fullmatch(text) is not None and not any(pair in text for pair in _PAIRS)


class Normalizer:
    """Compiled rules: all rules (default) or the named ones.

    >>> Normalizer()("র‌্যাব তঁার কাছে")  # ZWNJ becomes ZWJ; the chandrabindu moves
    'র‍্যাব তাঁর কাছে'
    """

    def __init__(self, rules: Iterable[str] = RULE_NAMES) -> None:
        wanted = set(rules)
        for name in sorted(wanted):
            check_choice("rules", name, RULE_NAMES)
        self.rules: tuple[str, ...] = tuple(name for name in RULE_NAMES if name in wanted)
        self._nfc = NFC in wanted
        self._compiled = [
            (rule.name, regex.compile(pattern), replacement)
            for rule in RULES
            if rule.name in wanted
            for pattern, replacement in rule.pairs
        ]

    def __call__(self, text: str, changes: Counter[str] | None = None) -> str:
        """Normalize text, and add to ``changes`` how often each rule applied (for ``nfc``: how many words changed)."""
        if is_plain(text):
            return text
        for _ in range(ROUNDS):
            composed = self._compose(text, changes)
            if is_plain(composed):
                return composed
            text = composed
            for name, pattern, replacement in self._compiled:
                text, count = pattern.subn(replacement, text)
                if count and changes is not None:
                    changes[name] += count
            if text == composed:  # no rule matched, so a second pass would change nothing
                return text
        return self._compose(text, changes)

    def _compose(self, text: str, changes: Counter[str] | None) -> str:
        if not self._nfc:
            return text
        composed = unicodedata.normalize("NFC", text)
        if changes is not None and composed != text:
            rewritten = sum(old != new for old, new in zip(text.split(), composed.split(), strict=True))
            changes[NFC] += max(1, rewritten)
        return composed


normalize = Normalizer()


def count_words(text: str) -> int:
    """Return the number of words in a normalized text, split at white space only (not at hyphens or dandas).

    >>> count_words("আমি বাংলায় গান গাই।")
    4
    """
    return len(text.split())
