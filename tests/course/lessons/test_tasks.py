"""The made-up tasks: what is asked has an answer, and what is measured was not learned from."""

from dataclasses import asdict, replace

import numpy as np
import torch
from tests.course.lessons.small import TINY, loud

from kotha.course.lessons import heads
from kotha.course.lessons.catalogue import lesson
from kotha.course.lessons.coreference import PRONOUN, VOCABULARY, coreference, looks, spelled, who_is_it
from kotha.course.lessons.lstm import echo
from kotha.course.lessons.runner import MeasuredLesson
from kotha.course.lessons.training_data import classroom
from kotha.course.lessons.vision import ELSEWHERE, SIDE, bitmap, digits, digits_of, draw, images_of
from kotha.inside.heads.importance import silence


def test_few_texts_are_the_first_ones_in_the_same_letters() -> None:
    whole, few = classroom(TINY), classroom(replace(TINY, most_tokens=50))
    assert len(few.learned) == 50 and np.array_equal(few.learned, whole.learned[:50])
    assert torch.equal(few.windows(), whole.windows()) and torch.equal(
        few.windows(1, learned=True), whole.windows(1, learned=True)
    )


def test_four_places_are_recalled_by_who_knows_them() -> None:
    puzzle = heads.four_places(8)
    rows = puzzle.batch(0, 0)
    assert torch.equal(rows, puzzle.batch(0, 0)) and not torch.equal(rows, puzzle.batch(0, 1))
    assert rows.shape == (8, 13) and (rows[:, -1] == rows.max()).all()
    assert puzzle.right(loud(heads.make(TINY, 2)), rows).shape == (8, 4)


def test_who_is_meant_is_the_one_of_the_two_whom_the_pronoun_fits() -> None:
    rows = who_is_it(300).batch(0, 0)
    children = VOCABULARY.index("শিক্ষক")
    for text in rows:
        people, answer = text[[0, 3]], text[-1]
        assert answer in people and (people < children).sum() == 1, "one child and one grown person"
        assert (VOCABULARY[text[PRONOUN]] == "সে") == bool(answer < children)
    assert 0.4 < (rows[:, 0] == rows[:, -1]).float().mean() < 0.6, "the place does not tell who is meant"
    assert spelled(torch.tensor([0, 16, 24, 8, 17, 25, 26, 0])) == "রহিম ঘাটে, শিক্ষক মাঠে। সে রহিম।"


def test_a_silenced_head_says_nothing_and_speaks_again_afterwards() -> None:
    torch.manual_seed(0)
    model = loud(coreference(MeasuredLesson(lesson("coreference"), **asdict(TINY))).tasks["whole"].make())
    rows = who_is_it(4).windows(16)
    every = list(looks(model, rows))
    assert len(every) == 2 * TINY.n_heads
    before = model(rows[:, :-1])
    with silence(model, every):
        at_pronoun = model(rows[:, :-1])[:, PRONOUN]
        same = rows[:, PRONOUN] == rows[0, PRONOUN]
        assert torch.allclose(at_pronoun[same], at_pronoun[0].expand(int(same.sum()), -1)), "nobody looks back"
    assert torch.equal(model(rows[:, :-1]), before)
    assert 0 <= who_is_it(4).share_right(model, rows) <= 1


def test_an_echo_is_said_by_who_looks_back() -> None:
    class Repeats(torch.nn.Module):
        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.one_hot(rows.roll(3, dims=1), 16).float()

    assert echo(4, 12, 3).share_right(Repeats()) == 1.0
    assert echo(4, 12, 2).share_right(Repeats()) < 0.3


def test_digits_stand_where_they_should_and_elsewhere_where_none_stood() -> None:
    desk = digits(50, 8)
    assert digits_of(desk.batch(0, 0)).max() < 10 and images_of(desk.batch(0, 0)).shape == (8, 1, SIDE, SIDE)
    home, away = (images_of(rows).mean(dim=0)[0] for rows in (desk.windows(), draw((2**31,), 500, ELSEWHERE)))
    assert home[:8, :7].mean() > 5 * home[12:].abs().mean() and away[8:, 8:].mean() > 5 * away[:5].abs().mean()
    assert len({bitmap(digit).tobytes() for digit in range(10)}) == 10
    learned = {row.numpy().tobytes() for row in torch.cat([desk.batch(0, step) for step in range(20)])}
    assert len(learned) <= 50 and not learned & {row.numpy().tobytes() for row in desk.windows()}
