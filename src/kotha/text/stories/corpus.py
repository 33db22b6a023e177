"""The built-in corpus: an endless, seeded source of original Bangla stories, news items and encyclopaedia entries.

A document is a *plot* (``plots/``: prose with holes and alternatives) told with words from a lexicon (``words/``)
that `grammar` inflects, so that person, rank, tense, case and
classifier agree. `scene` keeps what the document has said, so that the trade named at the start decides the tool
used later, the season the fruit, and five mangoes less two are three.

**The floor.** Every choice goes through one `Chooser`, which adds up the logarithm of its probability, and every
choice can be read off the text. So ``log_probability`` is that of the text itself, and the average of
``-log_probability`` over many documents is the entropy of the source: no model, however large, can do better on
fresh documents, on average. `floor_bits_per_byte` gives it in the unit that models of any tokenizer share. A model
that reaches it has learned the whole grammar.

**The caveat.** Should two different series of choices give the same text, the true probability of that text is
their sum and the floor stated here is too high; a test alters the choices one at a time to see that the text
changes. And it is an average: on a few documents a model may by luck do better. It holds for whole documents, each
begun without any context.

What it does not do: it states no facts about real people, and a village that is on some map is so by chance.
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

# How often each kind is written.
KINDS = {"story": 0.5, "news": 0.25, "entry": 0.25}


@dataclass(frozen=True, slots=True)
class Story:
    """A text, its kind (story, news or entry), and the natural logarithm of its probability."""

    text: str
    kind: str
    log_probability: float


def story(seed: int, index: int, kinds: Sequence[str] | None = None) -> Story:
    """Write document ``index`` of the corpus ``seed``: a pure function, on every platform.

    ``kinds`` limits the corpus to some kinds; that is another corpus, with its own probabilities.

    >>> story(0, 7) == story(0, 7)
    True
    """
    from kotha.text.stories.plot import compile_plot, plots  # loaded with the first document

    names = tuple(KINDS) if kinds is None else tuple(kinds)
    for name in names:
        check_choice("kinds", name, KINDS)
    if not names or len(set(names)) < len(names):
        raise UsageError(
            "{kinds} must name at least one kind, and each only once; choose from {known}",
            kinds=Option("kinds", names),
            known=[*KINDS],
        )
    chooser = Chooser(f"{seed}:{index}")
    kind = names[chooser.weighted([KINDS[name] for name in names])]
    plot = plots()[kind][chooser.below(len(plots()[kind]))]
    text = compile_plot(plot)(chooser).text
    return Story(text, kind, chooser.log_probability)


def stories(seed: int = 0, start: int = 0, kinds: Sequence[str] | None = None) -> Iterator[Story]:
    """Write documents for ever, from document ``start`` on.

    >>> first = next(stories(seed=3, start=5))
    >>> first == story(3, 5)
    True
    """
    return (story(seed, index, kinds) for index in itertools.count(start))


def floor_bits_per_byte(documents: Iterable[Story]) -> float:
    """The entropy of the source per byte of UTF-8, measured on these documents.

    >>> round(floor_bits_per_byte([Story("কথা", "story", -9 * math.log(2))]), 6)
    1.0
    """
    bits = size = 0.0
    for document in documents:
        bits -= document.log_probability / math.log(2)
        size += len(document.text.encode())
    if not size:
        raise UsageError("floor_bits_per_byte needs at least one document; pass e.g. itertools.islice(stories(), 100)")
    return bits / size
