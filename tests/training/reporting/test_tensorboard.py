"""TensorBoard's own reader can read the data that the listener wrote."""

import sys
from pathlib import Path

import pytest

from kotha.errors import KothaError
from kotha.training.reporting.tensorboard import TensorBoard


def read(folder: Path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    return EventAccumulator(str(folder)).Reload()


def test_steps_evaluations_and_samples_are_read_back(tmp_path: Path) -> None:
    with TensorBoard(tmp_path) as board:
        board({"step": 1, "loss_nats": 8.5, "learning_rate": None, "parts": {"words": 7.5, "pairs": 1.0}})
        board({"step": 2, "loss_nats": 8.0, "gradient_norm": float("nan")})
        board({"step": 2, "validation": {"loss_nats": 7.75, "bits_per_byte": 2.5}, "sample": "কথা বলি"})
        board({"step": 3, "validation": {"loss_nats": 7.5}, "sample": None})
    found = read(tmp_path)
    assert [(event.step, event.value) for event in found.Scalars("train/loss_nats")] == [(1, 8.5), (2, 8.0)]
    assert [(event.step, event.value) for event in found.Scalars("validation/bits_per_byte")] == [(2, 2.5)]
    assert set(found.Tags()["scalars"]) == {
        *("train/loss_nats", "train/parts/words", "train/parts/pairs"),
        *("validation/loss_nats", "validation/bits_per_byte"),
    }
    (text,) = found.Tensors("validation/sample/text_summary")
    assert text.step == 2
    assert text.tensor_proto.string_val[0].decode("utf-8") == "কথা বলি"


def test_without_the_package_an_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch.utils.tensorboard", raising=False)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(KothaError, match=r"pip install 'tensorboard"):
        TensorBoard(tmp_path)


def test_a_run_that_fails_to_start_leaves_no_folder(tmp_path: Path) -> None:
    with TensorBoard(tmp_path / "board"):
        pass
    assert not (tmp_path / "board").exists()
