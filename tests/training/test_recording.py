"""A step is recorded only if the same shapes repeat (tested without a GPU)."""

import torch

from kotha.training.execution import CUDAGraph, Outputs, Shares
from kotha.training.tasks.task import Batch


class FakeRecording(CUDAGraph):
    """Counts the recordings instead of recording."""

    def __init__(self) -> None:
        super().__init__(torch.device("cuda", 0), wanted=True)
        self.recorded: list[tuple[int, ...]] = []

    def _record(self, work: object, batches: object, shares: object) -> None:
        assert isinstance(batches, list)
        self.recorded.append(tuple(batches[0].tensors["tokens"].shape))


def step(recording: CUDAGraph, length: int) -> None:
    batch = Batch({"tokens": torch.zeros(2, length)}, {"tokens": length}, 2 * length)
    shares: Shares = [{"tokens": 1.0}]

    def work(tensors: object, shares: object) -> Outputs:
        raise AssertionError("nothing is recorded here, so nothing can be replayed")

    assert recording.replay(work, lambda: ([batch], shares)) is None


def test_a_step_of_one_shape_is_recorded_after_three_ordinary_ones() -> None:
    recording = FakeRecording()
    for _ in range(3):
        step(recording, 8)
    assert recording.recorded == []
    step(recording, 8)
    assert recording.recorded == [(2, 8)]


def test_steps_of_changing_shapes_are_never_recorded() -> None:
    recording = FakeRecording()
    for length in (8, 9, 9, 9, 10, 8, 8, 9) * 5:  # recording compiled these steps during capture, and broke dropout
        step(recording, length)
    assert recording.recorded == []


def test_a_shape_that_repeats_later_is_recorded() -> None:
    recording = FakeRecording()
    for length in (5, 8, 8, 8, 8):
        step(recording, length)
    assert recording.recorded == [(2, 8)]
