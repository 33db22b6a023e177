"""Bangla verbs in the standard spoken form (চলিত), by stem class.

A verb is named by its verbal noun (করা, লেখা, খাওয়া, দাঁড়ানো). From that name come seven stems, since the vowel
of the root rises before some endings (লেখে but লিখল, শোনে but শুনল, রাখে but রেখেছে), and each tense is one stem
and one row of endings. The rows go by person and rank: আমি, তুই, তুমি, সে, তিনি; আপনি takes the form of তিনি.
"""

import functools
import json
from typing import NamedTuple

from kotha.text.stories.lexicon import file_of

PERSONS = ("আমি", "তুই", "তুমি", "সে", "তিনি")
RISEN = {"ে": "ি", "ো": "ু", "ও": "উ"}
_GRAMMAR = json.loads(file_of("grammar.json"))
KEEPS_E, TAKES_I = _GRAMMAR["keeps_e"], _GRAMMAR["takes_i"]


class Stems(NamedTuple):
    """The stems that the endings are added to, each named by where it is used."""

    before_i: str  # করি, লিখি, খাই
    before_e: str  # করে, লেখে, খায়
    past: str  # করল, লিখল, খেল
    joined: str  # করে, লিখে, খেয়ে: "having done", and the base of the perfect
    going: str  # করছে, লিখছে, খাচ্ছে
    habit: str  # করত, লিখত, খেত
    future: str  # করব, লিখব, খাব


IRREGULAR = {verb: Stems(*stems) for verb, stems in _GRAMMAR["irregular"].items()}
ENDINGS: dict[str, str] = _GRAMMAR["endings"]  # of a tense: stem+ending for each person
TENSES = frozenset({"request", *(name for name in ENDINGS if " " not in name)})
# What is said as in another tense.
_AS = {("order", "তুমি"): "present", ("request", "তুই"): "present"}
_AS |= {("request", person): "future" for person in ("আমি", "সে", "তিনি")}
FORMS = frozenset({"joined", "to", "if", "noun", "of"})
# Forms that no rule gives, by verb, tense and person: the ends of words that would be misread, and commands of everyday
# verbs.
EXCEPTIONS: dict[str, dict[str, dict[str, str]]] = _GRAMMAR["exceptions"]


@functools.cache
def stems(verb: str) -> Stems:
    """The stems of a verb, from its verbal noun.

    >>> stems("লেখা").past, stems("লেখা").before_e, stems("রাখা").joined, stems("খাওয়া").going
    ('লিখ', 'লেখ', 'রেখে', 'খাচ্')
    """
    if verb in IRREGULAR:
        return IRREGULAR[verb]
    if verb.endswith("নো"):  # দাঁড়ানো, শেখানো, এগোনো, খাওয়ানো
        stem = verb.removesuffix("নো")
        root = stem[:-1]
        joined = (root if verb in KEEPS_E or stem.endswith("ো") else _risen(root)) + "িয়ে"
        if verb.endswith("ওয়ানো"):
            joined = verb.removesuffix("ওয়ানো") + "ইয়ে"
        return Stems(stem, stem, stem, joined, stem + "চ্", stem, stem)
    if verb.endswith("ওয়া"):  # খাওয়া, গাওয়া
        root = verb.removesuffix("ওয়া")
        front = root.replace("া", "ে")
        if verb in TAKES_I:
            return Stems(root, root, root + "ই", front + "য়ে", root + "ই", root + "ই", root + "ই")
        return Stems(root, root, front, front + "য়ে", root + "চ্", front, root)
    if verb.endswith("োয়া") or verb.endswith("োঁয়া"):  # শোয়া, ছোঁয়া
        root = verb.removesuffix("য়া")
        high = root.replace("ো", "ু")
        return Stems(high, root, high, high + "য়ে", high + "চ্", high, root)
    root = verb.removesuffix("া")  # করা, রাখা, লেখা, শোনা
    if "া" in root or root.startswith("আ"):
        return Stems(root, root, root, root.replace("া", "ে").replace("আ", "এ") + "ে", root, root, root)
    high = root if verb in KEEPS_E else _risen(root)
    return Stems(high, root, high, high + "ে", high, high, high)


def _risen(root: str) -> str:
    return "".join(RISEN.get(letter, letter) for letter in root)


def _is_open(verb: str) -> bool:
    """Whether the stem ends in a vowel: খা-, দাঁড়া-, শো-."""
    return verb.endswith(("নো", "ওয়া", "োয়া", "োঁয়া"))


def _request(verb: str) -> str:
    """What is asked of তুমি for later: কোরো, লিখো."""
    joined = stems(verb).joined
    bare = not any(sign in joined[:-1] for sign in "ািুেোউএঁ")
    return (joined[0] + "ো" + joined[1:-1] if bare else joined[:-1]) + "ো"


@functools.cache
def conjugate(phrase: str, tense: str, person: str) -> str:
    """A finite form; of a phrase the last word is the verb.

    >>> conjugate("করা", "past", "তিনি"), conjugate("জাল ফেলা", "was", "সে"), conjugate("যাওয়া", "future", "আমি")
    ('করলেন', 'জাল ফেলছিল', 'যাব')
    """
    before, space, verb = phrase.rpartition(" ")
    person = "তিনি" if person == "আপনি" else person
    if exception := EXCEPTIONS.get(verb, {}).get(tense, {}).get(person):
        form = exception
    elif (tense, person) in _AS:
        form = conjugate(verb, _AS[tense, person], person)
    elif tense == "request":
        form = _request(verb)
    else:
        row = ENDINGS.get(f"{tense} open" if _is_open(verb) else tense, ENDINGS[tense])
        stem, ending = row.split(" ")[PERSONS.index(person)].split("+")
        form = str(getattr(stems(verb), stem)) + ending
    return before + space + form


@functools.cache
def nonfinite(phrase: str, form: str) -> str:
    """A form without person: joined (করে), to (করতে), if (করলে), noun (করা), of (করার).

    >>> [nonfinite("শেখা", form) for form in ("joined", "to", "if", "noun", "of")]
    ['শিখে', 'শিখতে', 'শিখলে', 'শেখা', 'শেখার']
    """
    before, space, verb = phrase.rpartition(" ")
    stem = stems(verb)
    forms = {"joined": stem.joined, "to": stem.habit + "তে", "if": stem.past + "লে", "noun": verb, "of": verb + "র"}
    return before + space + forms[form]
