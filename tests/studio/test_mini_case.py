"""The stored test case for training in the page equals torch's result."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "mini_case.py"


def flat(values: Any) -> list[float]:
    return [each for value in values for each in flat(value)] if isinstance(values, list) else [values]


def test_torch_still_says_so() -> None:
    spec = importlib.util.spec_from_file_location("mini_case", SCRIPT)
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    made, kept = script.made(), json.loads(script.FILE.read_text(encoding="utf-8"))
    assert made["config"] == kept["config"] and made["texts"] == kept["texts"] and made["weights"] == kept["weights"]
    assert made["loss"] == pytest.approx(kept["loss"], abs=1e-12)
    for name, gradient in made["gradients"].items():
        assert gradient == pytest.approx(kept["gradients"][name], abs=1e-12), name
    assert flat(made["foretold"]) == pytest.approx(flat(kept["foretold"]), abs=1e-12)
