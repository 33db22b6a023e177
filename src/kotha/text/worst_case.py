"""The worst case of a perturbation: a greedy search for the changes that cost a model most.

Random noise shows an average; this search shows what somebody who tries can do. It uses changes that a reader of Bangla
hardly stumbles over: a letter for one that sounds the same, two aksharas of a word swapped, an akshara doubled, two
neighbouring words swapped. First every word is changed once to rank the words by the model's loss; then the worst words
get their worst change, one after the other (as in TextFooler, https://arxiv.org/abs/1907.11932).
"""

import itertools
import re
import unicodedata
from collections.abc import Callable, Sequence

from kotha.text.akshara import aksharas
from kotha.text.perturb import MARKS, misspellings

# Returns a model's loss on each of several versions of a text.
Losses = Callable[[Sequence[str]], list[float]]
MOST_WORDS, _MOST_VARIANTS = 40, 6  # only so many words of a text are changed


def variants(words: Sequence[str], at: int) -> list[tuple[str, ...]]:
    """Return the texts, as words, in which one word is changed, or swapped with the next.

    >>> variants(("নদী", "বড়"), 1)
    [('নদী', 'বর'), ('নদী', 'ড়ব'), ('নদী', 'ববড়'), ('নদী', 'বড়ড়')]
    """
    word = words[at]
    bare = word.strip(MARKS)
    letters = list(aksharas(bare))
    swapped = [(*letters[:n], letters[n + 1], letters[n], *letters[n + 2 :]) for n in range(len(letters) - 1)]
    doubled = [(*letters[: n + 1], *letters[n:]) for n in range(len(letters)) if len(letters) > 1]
    mistyped = [[word.replace(bare, "".join(each), 1) for each in kind] for kind in (swapped, doubled)]
    in_turn = itertools.chain(*itertools.zip_longest(misspellings(word), *mistyped, fillvalue=word))
    changed = [each for each in dict.fromkeys(in_turn) if each != word][:_MOST_VARIANTS]
    found = [(*words[:at], each, *words[at + 1 :]) for each in changed]
    if at + 1 < len(words) and words[at + 1] != word:
        found.append((*words[:at], words[at + 1], word, *words[at + 2 :]))
    return found


def worst_case(text: str, losses: Losses, share: float) -> str:
    """Return the text with up to a share of its words changed so that the loss rises most; white space is kept."""
    pieces = re.split(r"(\s+)", unicodedata.normalize("NFC", text))
    words, budget = tuple(pieces[::2]), max(1, round(share * len(text.split())))

    def joined(found: Sequence[str]) -> str:
        return "".join(word + gap for word, gap in zip(found, (*pieces[1::2], ""), strict=True))

    places = [at for at in range(len(words)) if variants(words, at)][:MOST_WORDS]
    if not places:
        return joined(words)
    now, *firsts = losses([joined(words), *(joined(variants(words, at)[0]) for at in places)])
    for _, at in sorted(zip(firsts, places, strict=True), reverse=True):
        rivals = variants(words, at)
        left = budget - sum(a != b for a, b in zip(words, pieces[::2], strict=True))
        rivals = [each for each in rivals if sum(a != b for a, b in zip(each, words, strict=True)) <= left]
        if not rivals:
            continue
        loss, best = max(zip(losses([joined(each) for each in rivals]), rivals, strict=True))
        if loss > now:
            now, words = loss, best
    return joined(words)
