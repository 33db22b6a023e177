"""Messages as data: an English template and the values that fill it in.

Nothing below the edges (terminal, HTTP, page) turns a message into the reader's language, and nothing anywhere
recognises one by its text: the template is the key of the catalogue (``catalogue.py``), as in gettext, and the values
travel beside it. ``str()`` of a message is its English, for Python and for logs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class Message:
    """A sentence for a person.

    >>> str(Message("{n:,} documents in {path}", n=8192, path="news.jsonl"))
    '8,192 documents in news.jsonl'

    Without values the template is taken literally, braces included. Values are numbers, strings, paths, amounts
    (``Size``, ``Duration``, ``Count``), names of arguments (``Option``), messages, and lists of these.
    """

    __slots__ = ("template", "values")

    def __init__(self, template: str, /, **values: Any) -> None:
        self.template = template
        self.values: Mapping[str, Any] = values

    def __str__(self) -> str:
        return english(self.template, self.values)

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __repr__(self) -> str:
        values = "".join(f", {name}={value!r}" for name, value in self.values.items())
        return f"Message({self.template!r}{values})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message):
            return NotImplemented
        return (self.template, self.values) == (other.template, other.values)

    def __hash__(self) -> int:
        return hash(self.template)

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: Any) -> dict[str, Any]:
        """In an answer of the server a message is its English."""
        python = {"type": "is-instance", "cls": cls}
        english = {"type": "to-string"}
        return {
            "type": "json-or-python",
            "json_schema": {"type": "str"},
            "python_schema": python,
            "serialization": english,
        }


class Plural(Message):
    """A message about ``n`` things, whose English differs for one.

    >>> str(Plural("{n} token", "{n:,} tokens", n=1)), str(Plural("{n} token", "{n:,} tokens", n=4096))
    ('1 token', '4,096 tokens')
    """

    __slots__ = ("one",)

    def __init__(self, one: str, other: str, /, *, n: float, **values: Any) -> None:
        super().__init__(other, n=n, **values)
        self.one = one

    def __str__(self) -> str:
        return english(self.one if self.values["n"] == 1 else self.template, self.values)


class ProgressMessage(Message):
    """A message about work that is under way: a display shows it until the next one comes."""

    __slots__ = ()


class Bilingual(Message):
    """A message that brings its own Bangla: content, which a data file holds in both languages side by side.

    >>> str(Bilingual("{n} rows", "{n}টি সারি").fill(n=3))
    '3 rows'
    """

    __slots__ = ("bangla",)

    def __init__(self, template: str, bangla: str, /, **values: Any) -> None:
        super().__init__(template, **values)
        self.bangla = bangla

    def fill(self, **values: Any) -> "Bilingual":
        """The same with values, or with more of them."""
        return Bilingual(self.template, self.bangla, **{**self.values, **values})


def english(template: str, values: Mapping[str, Any]) -> str:
    """A template filled in, in English."""
    listed = {name: ", ".join(map(str, each)) for name, each in values.items() if isinstance(each, list | tuple)}
    return template.format_map({**values, **listed}) if values else template


@dataclass(frozen=True)
class Option:
    """An argument by its name, and the value to give it: ``overwrite=True`` in Python, ``--overwrite`` in a command.

    >>> str(Option("overwrite", True)), Option("overwrite", True).flag
    ('overwrite=True', '--overwrite')
    >>> str(Option("key_file", ...)), Option("errors", "skip").flag, str(Option("minutes"))
    ('key_file=…', '--errors skip', 'minutes')
    """

    name: str
    value: Any = None

    def __str__(self) -> str:
        if self.value is None:
            return self.name
        return f"{self.name}={'…' if self.value is ... else repr(self.value)}"

    @property
    def flag(self) -> str:
        """As a command has it."""
        name = f"--{self.name.strip('_').replace('_', '-')}"
        if self.value is None or self.value is True:
            return name
        from shlex import quote

        return f"{name} {'…' if self.value is ... else quote(str(self.value))}"


# What a person reads: a message; or a string that is data (a name, a path, what a model wrote), no sentence of ours.
Text = Message | str
# What long work reports: the stage, how much of it is done, of how much.
OnProgress = Callable[[Text, int, int], None]
OnRemark = Callable[[Text], None]


def some_of(names: Sequence[str], most: int = 30) -> str:
    """Names in a row; of very many the first, and how many there are.

    >>> some_of(["a", "b", "c"]), some_of(["a", "b", "c"], most=2)
    ('a, b, c', 'a, b, … (3)')
    """
    return ", ".join(names) if len(names) <= most else f"{', '.join(names[:most])}, … ({len(names):,})"
