"""Pages render messages as Python does: both share test cases (``web/tests/message.test.ts``)."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.report.shown import message

from kotha.i18n.catalogue import catalogue, to_json, translate

TOLD = json.loads((Path(__file__).parents[2] / "web" / "tests" / "data" / "messages.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", TOLD["cases"], ids=lambda case: case["en"])
def test_python_renders_the_shared_messages(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for english, bangla in TOLD["bangla"].items():
        monkeypatch.setitem(catalogue("bn"), english, bangla)
    made = message(case["message"])
    assert (translate(made), translate(made, "bn"), to_json(made)) == (case["en"], case["bn"], case["message"])
