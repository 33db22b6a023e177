"""When a step is recorded: only where the same thing is done again and again (the GPU itself is not needed to say)."""

import torch

from kotha.training.execution import Outputs, Recording, Shares
from kotha.training.tasks.task import Batch


class Told(Recording):
    """Writes down what it was asked to record, instead of recording it."""

    def __init__(self) -> None:
        super().__init__(torch.device("cuda", 0), wanted=True)
        self.asked: list[tuple[int, ...]] = []

    def _record(self, work: object, batches: object, shares: object) -> None:
        assert isinstance(batches, list)
        self.asked.append(tuple(batches[0].tensors["tokens"].shape))


def step(recording: Recording, length: int) -> None:
    batch = Batch({"tokens": torch.zeros(2, length)}, {"tokens": length}, 2 * length)
    shares: Shares = [{"tokens": 1.0}]

    def work(tensors: object, shares: object) -> Outputs:
        raise AssertionError("nothing is recorded here, so nothing can be replayed")

    assert recording.replay(work, lambda: ([batch], shares)) is None


def test_a_step_of_one_shape_is_recorded_after_three_ordinary_ones() -> None:
    recording = Told()
    for _ in range(3):
        step(recording, 8)
    assert recording.asked == []
    step(recording, 8)
    assert recording.asked == [(2, 8)]


def test_steps_of_changing_shapes_are_never_recorded() -> None:
    recording = Told()
    for length in (8, 9, 9, 9, 10, 8, 8, 9) * 5:  # recording one compiled in the midst of it, and broke dropout
        step(recording, length)
    assert recording.asked == []


def test_a_shape_that_has_settled_is_recorded() -> None:
    recording = Told()
    for length in (5, 8, 8, 8, 8):
        step(recording, length)
    assert recording.asked == [(2, 8)]
