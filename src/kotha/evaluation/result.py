"""What every result of a measurement shares: it becomes JSON, and comes back from a run's summary."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, ClassVar, Self

from kotha.i18n.message import Message, Text


class Measurement:
    """The base of the frozen dataclasses that hold scores."""

    left_out: ClassVar[tuple[str, ...]] = ()  # fields that are too long for JSON
    figures: ClassVar[tuple[str, ...]] = ()  # fields that its baselines have too
    part: ClassVar[type | None] = None  # what its tuples of objects hold
    baselines: Any

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        found = asdict(self)  # type: ignore[call-overload]
        return {name: value for name, value in found.items() if name not in self.left_out}

    def compared(self, name: Text, digits: int) -> list[list[Text]]:
        """The model's figures, and below them what its baselines reach."""
        found: list[tuple[Text, dict[str, float]]] = [(name, vars(self))]
        found += [(Message(other), each) for other, each in self.baselines.items()]
        return [[each, *(f"{values[key]:.{digits}f}" for key in self.figures)] for each, values in found]

    @classmethod
    def of_summary(cls, summary: Mapping[str, Any]) -> Self:
        """The score that a run's summary holds, as ``to_dict`` gave it; what an older run lacks has its default."""
        names = {each.name for each in fields(cls)}  # type: ignore[arg-type]
        return cls(**{name: _restored(summary[name], cls.part) for name in names & summary.keys()})


def _restored(value: Any, part: type | None) -> Any:
    if not isinstance(value, list | tuple):
        return value
    return tuple(part(**each) if part and isinstance(each, dict) else _restored(each, part) for each in value)


def beside(others: Mapping[str, float]) -> list[list[Text]]:
    """A row for each share that something simpler reaches."""
    return [[Message("baseline: {other}", other=Message(name)), f"{share:.1%}"] for name, share in others.items()]
