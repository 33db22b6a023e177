"""The cases that the page's own sampling is held to are the library's."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from kotha.generation.plain import chances
from kotha.generation.settings import SamplingSettings

CASES = json.loads((Path(__file__).parents[2] / "web/tests/cases/sampling.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES)
def test_the_page_is_held_to_what_the_library_draws_from(case: dict[str, Any]) -> None:
    kept = chances(torch.tensor(case["logits"]), SamplingSettings(**case["settings"]), case["seen"])
    assert list(kept) == case["kept"]
    assert list(kept.values()) == pytest.approx(case["chances"], abs=1e-9)
