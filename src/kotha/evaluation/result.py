"""The base class of evaluation results, with conversion to JSON and from a run's summary."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, ClassVar, Self

from kotha.i18n.message import Message, Text
from kotha.i18n.short_repr import ShortRepr


class Measurement(ShortRepr):
    """The base class of the frozen dataclasses that hold scores."""

    left_out: ClassVar[tuple[str, ...]] = ()  # fields too long for JSON
    figures: ClassVar[tuple[str, ...]] = ()  # fields with scores, which baselines have too
    part: ClassVar[type | None] = None  # dataclass of the items in tuple fields
    renamed: ClassVar[Mapping[str, str]] = {}  # field names in earlier summaries, and the current names
    baselines: Any

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict for JSON."""
        found = asdict(self)  # type: ignore[call-overload]
        return {name: value for name, value in found.items() if name not in self.left_out}

    def compared(self, name: Text, digits: int) -> list[list[Text]]:
        """Return table rows with the model's scores, then those of its baselines."""
        found: list[tuple[Text, dict[str, float]]] = [(name, vars(self))]
        found += [(Message(other), each) for other, each in self.baselines.items()]
        return [[each, *(f"{values[key]:.{digits}f}" for key in self.figures)] for each, values in found]

    @classmethod
    def of_summary(cls, summary: Mapping[str, Any]) -> Self:
        """Restore a score from a run's summary, as written by `to_dict`; missing fields get their defaults."""
        summary = _current(summary, cls)
        names = {each.name for each in fields(cls)}  # type: ignore[arg-type]
        return cls(**{name: _restored(summary[name], cls.part) for name in names & summary.keys()})


def _current(values: Mapping[str, Any], kind: Any) -> dict[str, Any]:
    renamed = getattr(kind, "renamed", {})
    return {renamed.get(name, name): value for name, value in values.items()}


def _restored(value: Any, part: type | None) -> Any:
    if not isinstance(value, list | tuple):
        return value
    return tuple(
        part(**_current(each, part)) if part and isinstance(each, dict) else _restored(each, part) for each in value
    )


def baseline_rows(others: Mapping[str, float]) -> list[list[Text]]:
    """Return table rows for the baselines, each with its score as a percentage."""
    return [[Message("baseline: {other}", other=Message(name)), f"{share:.1%}"] for name, share in others.items()]
