"""The built-in corpus: an endless, seeded source of original Bangla stories, news items and encyclopaedia entries.

A document is a *plot* (``plots/``: templates with roles and options) filled with words from a lexicon (``words/``).
`grammar` inflects them, so that person, rank, tense, case and classifier agree. `scene` keeps the state of a document:
the trade named at the start determines the tool used later, the season determines the fruit, and when two of five
mangoes are given away, three are left.

**The floor.** Every choice goes through one `Chooser`, which adds up log-probabilities, and every choice is visible in
the text. ``log_probability`` is therefore the log-probability of the text itself, and the average of
``-log_probability`` over many documents is the entropy of the source. No model can have a lower average loss on new
documents. `floor_bits_per_byte` returns the floor per byte, which is comparable across tokenizers. A model that reaches
the floor has learned the complete grammar.

**Limits.** If two sequences of choices gave the same text, its true probability would be their sum, and the floor would
be too high; a test changes one choice at a time and checks that the text changes. The floor is an average, so a model
can be below it on a few documents by chance. It applies to complete documents without preceding context.

The documents state no facts about real people, and any match with a real village is a coincidence.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kotha.errors import UsageError
from kotha.i18n.message import Option
from kotha.text.choices import check_choice
from kotha.text.stories.scene import Chooser

__all__ = ["KINDS", "Story", "floor_bits_per_byte", "stories", "story"]

# Probability of each kind.
KINDS = {"story": 0.5, "news": 0.25, "entry": 0.25}


@dataclass(frozen=True, slots=True)
class Story:
    """A document, its kind (story, news or entry), and the natural logarithm of its probability."""

    text: str
    kind: str
    log_probability: float


def story(seed: int, index: int, kinds: Sequence[str] | None = None) -> Story:
    """Generate document ``index`` of the corpus with this ``seed``; the result is the same on every platform.

    ``kinds`` restricts the corpus to some kinds; the result is a different corpus with its own probabilities.

    >>> story(0, 7) == story(0, 7)
    True
    """
    from kotha.text.stories.plot import compile_plot, plots  # loaded on first use

    names = tuple(KINDS) if kinds is None else tuple(kinds)
    for name in names:
        check_choice("kinds", name, KINDS)
    if not names or len(set(names)) < len(names):
        raise UsageError(
            "{kinds} must name at least one kind, each only once; choose from {known}",
            kinds=Option("kinds", names),
            known=[*KINDS],
        )
    chooser = Chooser(f"{seed}:{index}")
    kind = names[chooser.weighted([KINDS[name] for name in names])]
    plot = plots()[kind][chooser.below(len(plots()[kind]))]
    text = compile_plot(plot)(chooser).text
    return Story(text, kind, chooser.log_probability)


def stories(seed: int = 0, start: int = 0, kinds: Sequence[str] | None = None) -> Iterator[Story]:
    """Return an endless iterator of documents, starting with number ``start``.

    >>> first = next(stories(seed=3, start=5))
    >>> first == story(3, 5)
    True
    """
    return (story(seed, index, kinds) for index in itertools.count(start))


def floor_bits_per_byte(documents: Iterable[Story]) -> float:
    """Estimate the entropy of the source in bits per UTF-8 byte from these documents.

    >>> round(floor_bits_per_byte([Story("কথা", "story", -9 * math.log(2))]), 6)
    1.0
    """
    bits = size = 0.0
    for document in documents:
        bits -= document.log_probability / math.log(2)
        size += len(document.text.encode())
    if not size:
        raise UsageError(
            "floor_bits_per_byte requires at least one document; pass, for example, itertools.islice(stories(), 100)"
        )
    return bits / size
