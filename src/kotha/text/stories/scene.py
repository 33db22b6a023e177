"""The state of a document in progress: its filled roles and the probability of all choices so far.

A plot refers to roles (``hero``, ``season``, ``fruit2``). A role is filled at its first mention, never earlier, so that
every choice is visible in the text, and stays the same to the end of the document. A role with an owner depends on it:
``trade.tool`` is a tool of the trade mentioned before, ``season.fruit`` a fruit of that season, ``hero.kin`` the word
for a relative in the hero's family, and ``hero.water`` the family's word for water. A word written in digits, such as
``crop.price``, fills its role with a number. No word is used for two roles in one document.

A `Chooser` makes all random choices in a document and adds up the logarithms of their probabilities, so that at the end
``log_probability`` is that of the complete document. For this sum to be correct, nothing may be drawn and discarded: "a
name other than the first" is a choice among the remaining names, never a second draw.
"""

import math
import random
import re
from collections.abc import Callable, Mapping, Sequence

from kotha.text.stories.lexicon import Noun, Tables


class Chooser:
    """Makes random choices and adds up their log-probability.

    >>> chooser = Chooser("7:0")
    >>> chooser.below(4) in range(4), round(chooser.log_probability, 4)
    (True, -1.3863)
    """

    __slots__ = ("draw", "log_probability")

    def __init__(self, seed: str) -> None:
        # A string seed is hashed with SHA-512, so it does not depend on the platform or the hash seed.
        self.draw = random.Random(seed).random
        self.log_probability = 0.0

    def below(self, n: int) -> int:
        """Choose one of 0 … n-1, all equally probable."""
        self.log_probability -= math.log(n)
        return int(self.draw() * n)

    def weighted(self, weights: Sequence[float]) -> int:
        """Choose an index in proportion to its weight."""
        total = sum(weights)
        point = self.draw() * total
        chosen = 0
        for chosen, weight in enumerate(weights):  # noqa: B007 - the last index is used if rounding runs past the end
            point -= weight
            if point < 0:
                break
        self.log_probability += math.log(weights[chosen] / total)
        return chosen

    def several(self, k: int, n: int) -> list[int]:
        """Choose k distinct numbers from 0 … n-1; their order is part of the choice."""
        left = list(range(n))
        return [left.pop(self.below(len(left))) for _ in range(k)]


Fill = Callable[["Scene"], Noun | int]
# Parts that may be mentioned before their owner, because they determine it: a month or a fair determines the season.
TELLING = frozenset({"month", "fair"})


class Scene:
    """The roles of one document, filled as the text mentions them."""

    __slots__ = ("cast", "chooser", "filled", "tables", "used")

    def __init__(self, chooser: Chooser, tables: Tables, cast: Mapping[str, Fill]) -> None:
        self.chooser = chooser
        self.tables = tables
        self.cast = cast
        self.filled: dict[str, Noun | int] = {}
        self.used: set[str] = set()

    def role(self, name: str) -> Noun | int:
        """Return the word or number in a role, which is chosen at the first mention."""
        found = self.filled.get(name)
        if found is None:
            fill = self.cast.get(name)
            found = fill(self) if fill else self.draw(name)
            if isinstance(found, Noun) and found.text.isdigit():
                found = int(found.text)
            self.filled[name] = found
        return found

    def noun(self, name: str) -> Noun:
        """Return the word in a role."""
        found = self.role(name)
        assert isinstance(found, Noun), f"role {name} is the number {found}"
        return found

    def value(self, name: str) -> int:
        """Return the number in a role."""
        found = self.role(name)
        assert isinstance(found, int), f"role {name} is the word {found}"
        return found

    def person(self, name: str) -> str:
        """Return the pronoun that determines the verb forms of a role."""
        rank = self.noun(name).rank
        assert rank is not None, f"role {name} is {self.noun(name).text}, which is not a person"
        return rank

    def draw(self, path: str) -> Noun:
        """Choose a word that the document has not used yet, from a table or from the parts of another role."""
        owner, _, part = path.rstrip("0123456789").rpartition(".")
        if owner:
            assert owner in self.filled or part in TELLING, f"{path} is mentioned before {owner}"
            options = self.noun(owner).parts[part]
        else:
            options = self.tables[part]
        used = self.used
        if used:
            # If all words have been used (a district with one river), words may repeat.
            options = tuple(noun for noun in options if (noun.key or noun.text) not in used) or options
        chosen = options[self.chooser.below(len(options))]
        used.add(chosen.key or chosen.text)
        return chosen


def parse_fill(spec: str) -> Fill:
    """Parse the source of a role: a table (``child``), a part of a role (``hero.kin``), a number, a range or a sum.

    >>> scene = Scene(Chooser("0"), {}, {"had": parse_fill("9..9"), "left": parse_fill("had-4")})
    >>> scene.value("left")
    5
    """
    if ".." in spec:
        low, high = (_parse_sum(bound) for bound in spec.split(".."))
        return lambda scene: low(scene) + scene.chooser.below(high(scene) - low(scene) + 1)
    if spec.isdigit() or re.search(r"[-+*]", spec):
        return _parse_sum(spec)
    return lambda scene: scene.draw(spec)


def _parse_sum(expression: str) -> Callable[[Scene], int]:
    """Parse numbers and number roles joined by + - *, evaluated from left to right."""
    terms = re.findall(r"([-+*]?)([\w.]+)", expression)

    def evaluate(scene: Scene) -> int:
        result = 0
        for sign, term in terms:
            value = int(term) if term.isdigit() else scene.value(term)
            result = result * value if sign == "*" else result + (-value if sign == "-" else value)
        return result

    return evaluate
