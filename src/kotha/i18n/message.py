"""Messages as data: an English template and its values.

Only the terminal, the HTTP server and the pages translate messages, and no code identifies a message by its text. The
template is the key of the catalogue (``catalogue.py``), as in gettext. ``str()`` returns the English text, for Python
and for logs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class Message:
    """A text to show to the user, with its values.

    >>> str(Message("{n:,} documents in {path}", n=8192, path="news.jsonl"))
    '8,192 documents in news.jsonl'

    A template without values is literal, braces included. Values are numbers, strings, paths, amounts
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
        """Serialize a message as its English text in server responses."""
        python = {"type": "is-instance", "cls": cls}
        english = {"type": "to-string"}
        return {
            "type": "json-or-python",
            "json_schema": {"type": "str"},
            "python_schema": python,
            "serialization": english,
        }


class Plural(Message):
    """A message about ``n`` items, with a separate English template for the singular.

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
    """A message about the current work; a display replaces it with the next one."""

    __slots__ = ()


class Bilingual(Message):
    """A message that carries its Bangla text, for data files with both languages.

    >>> str(Bilingual("{n} rows", "{n}টি সারি").fill(n=3))
    '3 rows'
    """

    __slots__ = ("bangla",)

    def __init__(self, template: str, bangla: str, /, **values: Any) -> None:
        super().__init__(template, **values)
        self.bangla = bangla

    def fill(self, **values: Any) -> "Bilingual":
        """Return a copy with additional values."""
        return Bilingual(self.template, self.bangla, **{**self.values, **values})


def english(template: str, values: Mapping[str, Any]) -> str:
    """Fill in the English template of a message."""
    listed = {name: ", ".join(map(str, each)) for name, each in values.items() if isinstance(each, list | tuple)}
    return template.format_map({**values, **listed}) if values else template


@dataclass(frozen=True)
class Option:
    """The name of an argument with a value: ``overwrite=True`` in Python, ``--overwrite`` on the command line.

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
        """The argument as a command-line option."""
        name = f"--{self.name.strip('_').replace('_', '-')}"
        if self.value is None or self.value is True:
            return name
        from shlex import quote

        return f"{name} {'…' if self.value is ... else quote(str(self.value))}"


# A message, or a string of data that is not translated (a name, a path, the output of a model).
Text = Message | str
# The progress of a long task: the stage, the amount done, the total amount.
OnProgress = Callable[[Text, int, int], None]
OnRemark = Callable[[Text], None]


def some_of(names: Sequence[str], most: int = 30) -> str:
    """Join names; if there are more than ``most``, join only the first ones and append the total number.

    >>> some_of(["a", "b", "c"]), some_of(["a", "b", "c"], most=2)
    ('a, b, c', 'a, b, … (3)')
    """
    return ", ".join(names) if len(names) <= most else f"{', '.join(names[:most])}, … ({len(names):,})"
