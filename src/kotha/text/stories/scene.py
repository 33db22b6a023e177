"""What a document has said so far: who and what has been named, and how probable every choice of it was.

A plot speaks of roles (``hero``, ``season``, ``fruit2``). A role is filled when the text first mentions it, never
sooner, so that every choice can be read in the text; after that the role stays the same to the end of the document.
Roles with one owner are tied to it: ``trade.tool`` is a tool of the trade already named, ``season.fruit`` a fruit
of that season, ``hero.kin`` a relative as that family would call them, ``hero.water`` its word for water. A word
that is written in digits fills its role as a number: ``crop.price``. Two roles never share a word.

A document is made by asking a `Chooser` a series of questions. Each answer adds the logarithm of its probability,
so that at the end ``log_probability`` is that of the whole document. For the sum to be right nothing may be drawn
and thrown away: "another name than the first" is a choice among the names that are left, never a second try.
"""

import math
import random
import re
from collections.abc import Callable, Mapping, Sequence

from kotha.text.stories.lexicon import Noun, Tables


class Chooser:
    """Answers to random questions, and how probable they were.

    >>> chooser = Chooser("7:0")
    >>> chooser.below(4) in range(4), round(chooser.log_probability, 4)
    (True, -1.3863)
    """

    __slots__ = ("draw", "log_probability")

    def __init__(self, seed: str) -> None:
        # A string seed goes through SHA-512, so that it means the same on every platform and under every hash seed.
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
        for chosen, weight in enumerate(weights):  # noqa: B007 - the last one stands when rounding runs past the end
            point -= weight
            if point < 0:
                break
        self.log_probability += math.log(weights[chosen] / total)
        return chosen

    def several(self, k: int, n: int) -> list[int]:
        """Choose k different ones of 0 … n-1, in an order that is part of the choice."""
        left = list(range(n))
        return [left.pop(self.below(len(left))) for _ in range(k)]


Fill = Callable[["Scene"], Noun | int]
# Owners that a part of theirs gives away, so that the part may come first: a month or a fair tells its season.
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
        """Who or what fills a role, chosen now if this is its first mention."""
        found = self.filled.get(name)
        if found is None:
            fill = self.cast.get(name)
            found = fill(self) if fill else self.draw(name)
            if isinstance(found, Noun) and found.text.isdigit():
                found = int(found.text)
            self.filled[name] = found
        return found

    def noun(self, name: str) -> Noun:
        """A role that must be a word."""
        found = self.role(name)
        assert isinstance(found, Noun), f"role {name} is the number {found}"
        return found

    def value(self, name: str) -> int:
        """A role that must be a number."""
        found = self.role(name)
        assert isinstance(found, int), f"role {name} is the word {found}"
        return found

    def person(self, name: str) -> str:
        """The pronoun whose verb forms a role takes."""
        rank = self.noun(name).rank
        assert rank is not None, f"role {name} is {self.noun(name).text}, which is nobody"
        return rank

    def draw(self, path: str) -> Noun:
        """Choose a word that the document has not used, from a table or from what belongs to another role."""
        owner, _, part = path.rstrip("0123456789").rpartition(".")
        if owner:
            assert owner in self.filled or part in TELLING, f"{path} is mentioned before {owner}"
            options = self.noun(owner).parts[part]
        else:
            options = self.tables[part]
        used = self.used
        if used:
            # Where every word has been used (a district with one river, already crossed), one may come again.
            options = tuple(noun for noun in options if (noun.key or noun.text) not in used) or options
        chosen = options[self.chooser.below(len(options))]
        used.add(chosen.key or chosen.text)
        return chosen


def parse_fill(spec: str) -> Fill:
    """How a cast fills a role: a table (``child``), a part of a role (``hero.kin``), a number, a range or a sum.

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
    """Numbers and number roles joined by + - *, read from left to right."""
    terms = re.findall(r"([-+*]?)([\w.]+)", expression)

    def evaluate(scene: Scene) -> int:
        result = 0
        for sign, term in terms:
            value = int(term) if term.isdigit() else scene.value(term)
            result = result * value if sign == "*" else result + (-value if sign == "-" else value)
        return result

    return evaluate
