"""The order of examples: each once an epoch, anew each time, and like beside like where lengths are known."""

import numpy as np
import pytest

from kotha.training.tasks.examples import Order


def epochs(order: Order, n_examples: int, count: int) -> list[list[int]]:
    return [[order.example(turn) for turn in range(n * n_examples, (n + 1) * n_examples)] for n in range(count)]


@pytest.mark.parametrize("n_examples", [1, 7, 64, 1000, 1001])
@pytest.mark.parametrize("sorted_by_length", [False, True])
def test_each_example_once_an_epoch_in_a_new_order(n_examples: int, sorted_by_length: bool) -> None:
    lengths = np.random.default_rng(1).integers(1, 200, n_examples) if sorted_by_length else None
    order = Order(n_examples, 8, seed=3, lengths=lengths)
    seen = epochs(order, n_examples, 3)
    assert all(sorted(each) == list(range(n_examples)) for each in seen)
    assert n_examples < 64 or seen[0] != seen[1] != seen[2]
    assert seen == epochs(Order(n_examples, 8, seed=3, lengths=lengths), n_examples, 3), "seed and turn decide"
    assert n_examples < 64 or seen != epochs(Order(n_examples, 8, seed=4, lengths=lengths), n_examples, 3)


def test_texts_of_a_batch_are_about_as_long_and_batches_come_in_any_order() -> None:
    lengths = np.random.default_rng(1).geometric(0.03, 1000)
    steps = range(3 * 1000 // 8)

    def filled(order: Order) -> float:
        """The share of all positions that is text."""
        batches = [lengths[order.examples(step)] for step in steps]
        return sum(each.sum() for each in batches) / sum(len(each) * each.max() for each in batches)

    alike, any_order = Order(1000, 8, seed=0, lengths=lengths), Order(1000, 8, seed=0)
    assert filled(any_order) < 0.5
    assert filled(alike) > 0.8
    longest = [int(lengths[alike.examples(step)].max()) for step in range(1000 // 8)]
    follows = np.corrcoef(longest[:-1], longest[1:])[0, 1]
    assert abs(follows) < 0.3, "the length of a batch says nothing of the next one's"
