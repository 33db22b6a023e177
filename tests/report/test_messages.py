"""Pages write messages as Python does: both are held to the same answers (``web/tests/message.test.ts``)."""

import json
from pathlib import Path
from typing import Any

import pytest

from kotha.i18n.catalogue import catalogue, to_json, translate
from kotha.i18n.message import Count, Duration, Message, Option, Plural, Size

TOLD = json.loads((Path(__file__).parents[2] / "web" / "tests" / "data" / "messages.json").read_text(encoding="utf-8"))
AMOUNTS = {"size": Size, "duration": Duration, "count": Count}


def value(told: Any) -> Any:
    if isinstance(told, list):
        return [value(each) for each in told]
    if not isinstance(told, dict):
        return told
    if "template" in told:
        return message(told)
    if "option" in told:
        return Option(told["option"], told["value"])
    ((name, amount),) = told.items()
    return AMOUNTS[name](amount)


def message(told: dict[str, Any]) -> Message:
    values = {name: value(each) for name, each in told["values"].items()}
    return Plural(told["one"], told["template"], **values) if "one" in told else Message(told["template"], **values)


@pytest.mark.parametrize("case", TOLD["cases"], ids=lambda case: case["en"])
def test_python_writes_them_so_too(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for english, bangla in TOLD["bangla"].items():
        monkeypatch.setitem(catalogue("bn"), english, bangla)
    made = message(case["message"])
    assert (translate(made), translate(made, "bn"), to_json(made)) == (case["en"], case["bn"], case["message"])
