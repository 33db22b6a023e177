"""`kotha presets` as a user types it."""

import json
from typing import Any

import pytest

import kotha
from kotha.cli.main import main
from kotha.model.parameters import count_parameters


@pytest.mark.parametrize("preset", kotha.presets(), ids=lambda each: each.name)
def test_the_counts_are_those_of_the_built_models(preset: Any) -> None:
    assert preset.parameters == count_parameters(preset.config).total


def test_the_list_as_json_and_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["presets", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {"name": "bangla-58m", "family": "gpt", "parameters": 58_139_648}.items() <= rows[5].items()
    assert main(["presets"]) == 0
    shown = capsys.readouterr().out
    assert all(row["name"] in shown and row["purpose"] in shown for row in rows)
