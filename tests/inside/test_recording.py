"""Recordings: figures of every place, and arrays that are whole or absent."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.inside.small_models import BODIES, small
from tests.inside.test_attention import input_of

from kotha.errors import KothaError
from kotha.inside.trace import record, trace, write_arrays


@pytest.mark.parametrize("body", BODIES)
def test_arrays_are_what_was_traced(tmp_path: Path, body: str) -> None:
    model, given = small(body).model, input_of(body)
    with trace(model) as seen, torch.no_grad():
        model(*given.inputs)
    write_arrays(tmp_path / "a.npz", record(model, given))
    with np.load(tmp_path / "a.npz") as arrays:
        for place in seen:
            for number, values in enumerate(seen.passes(place)):
                twice = len(seen.passes(place)) > 1
                name = f"{place}.{('source', 'target')[number]}" if twice else place
                whole = values if place == "positions" and body == "vit" else values[0]
                assert np.array_equal(arrays[name], whole.numpy())
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]


def test_figures_leave_out_what_a_mask_hides() -> None:
    (found,) = record(small("gpt").model, input_of("gpt"), ["blocks.0"], ["*.masked_scores"])
    values = found.values.double().numpy()
    row = found.to_dict()
    finite = values[np.isfinite(values)]
    assert row["hidden"] == values.size - finite.size > 0
    assert row["mean"] == pytest.approx(finite.mean()) and row["std"] == pytest.approx(finite.std())
    assert (row["min"], row["max"]) == (finite.min(), finite.max())


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(KothaError, match="is a folder; name a file in it"):
        write_arrays(tmp_path / "folder", record(small("gpt").model, input_of("gpt"), None, ["logits"]))
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
