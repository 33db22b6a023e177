"""Without the mask, a position attends to later tokens; with the mask, it does not."""

import pytest
import torch
from tests.course.lessons.small import TINY, changed, loud

from kotha.course.lessons.measures import blind_loss, let_write, moved_by_shuffling, sighted_loss
from kotha.course.lessons.training_data import classroom
from kotha.course.lessons.variants import LooksAhead
from kotha.model.gpt import GPT


def test_a_later_token_changes_an_earlier_answer_only_without_the_mask() -> None:
    config = classroom(TINY).gpt()
    masked, unmasked = changed(GPT(config)), changed(LooksAhead(config))
    assert (masked[:-1] == 0).all() and masked[-1] > 0
    assert (unmasked > 0).all()


def test_with_the_mask_future_tokens_make_no_difference() -> None:
    room = classroom(TINY)
    windows = room.windows()
    apart = []
    for seed in range(4):  # an untrained model may gain as much from later tokens as it loses
        torch.manual_seed(seed)
        masked, unmasked = loud(GPT(room.gpt())), loud(LooksAhead(room.gpt()))
        assert abs(blind_loss(masked, windows) - sighted_loss(masked, windows)) < 1e-5
        apart.append(abs(blind_loss(unmasked, windows) - sighted_loss(unmasked, windows)))
    assert max(apart) > 1e-3


def test_only_complete_generated_words_are_counted() -> None:
    room = classroom(TINY)
    torch.manual_seed(1)
    model = GPT(room.gpt())
    texts, known = let_write(model, room, seed=0)
    start = room.tokenizer.decode(room.tokenizer.encode(room.held_out_texts[0])[:5])
    assert len(texts) == 3 and texts[0].startswith(start)
    assert 0 <= known < 1, "an untrained model writes hardly any real word"


@pytest.mark.parametrize(
    ("n_layers", "positions", "order_matters"),
    [(1, "none", False), (2, "none", True), (1, "learned", True), (2, "learned", True)],
)
def test_a_shuffled_past_is_the_same_only_to_one_layer_without_positions(
    n_layers: int, positions: str, order_matters: bool
) -> None:
    torch.manual_seed(0)
    room = classroom(TINY)
    model = loud(GPT(room.gpt(n_layers=n_layers, positions=positions)))
    moved = moved_by_shuffling(model, room.windows())
    assert moved > 1e-3 if order_matters else moved < 1e-5
