"""The made-up tasks: what is asked has an answer, what is measured was not learned from, and the reading follows."""

import numpy as np
import torch
from tests.course.lessons.small import TINY, loud

from kotha.course.lessons import coreference, dropout, encoder, heads, joined, lstm, residuals, vision, width
from kotha.course.lessons.classroom import Sizes, classroom
from kotha.course.lessons.coreference import PRONOUN, VOCABULARY, WhoIsIt, looks, share_right, spelled
from kotha.course.lessons.drawn_digits import SIDE, DrawnDigits, bitmap, digits_of, images_of
from kotha.course.lessons.heads import FourPlaces, right
from kotha.course.lessons.lstm import Echo
from kotha.course.lessons.occasion import Occasion
from kotha.course.lessons.result import Condition
from kotha.i18n.message import Bilingual
from kotha.inside.heads.importance import silence


def row(key: str, **figures: list[float]) -> Condition:
    return Condition(key, Bilingual(key, key), figures)


def test_a_lesson_s_own_sizes_hold_where_nobody_asked_for_others() -> None:
    assert Occasion().prefer(steps=100, d_model=32).sizes == Sizes(steps=100, d_model=32)
    assert Occasion(Sizes(steps=7)).prefer(steps=100, d_model=32).sizes == Sizes(steps=7, d_model=32)


def test_few_texts_are_the_first_ones_in_the_same_letters() -> None:
    whole, few = classroom(TINY), classroom(TINY.change(most_tokens=50))
    assert len(few.learned) == 50 and np.array_equal(few.learned, whole.learned[:50])
    assert torch.equal(few.windows(), whole.windows()) and torch.equal(few.windows_read(1), whole.windows_read(1))


def test_four_places_are_recalled_by_who_knows_them() -> None:
    rows = FourPlaces(8).batch(0, 0)
    assert torch.equal(rows, FourPlaces(8).batch(0, 0)) and not torch.equal(rows, FourPlaces(8).batch(0, 1))
    assert rows.shape == (8, 13) and (rows[:, -1] == rows.max()).all()
    model = loud(heads.make(TINY.change(d_model=16), 2))
    assert right(model, rows).shape == (8, 4)


def test_who_is_meant_is_the_one_of_the_two_whom_the_pronoun_fits() -> None:
    rows = WhoIsIt(300).batch(0, 0)
    children = VOCABULARY.index("শিক্ষক")
    for text in rows:
        people, answer = text[[0, 3]], text[-1]
        assert answer in people and (people < children).sum() == 1, "one child and one grown person"
        assert (VOCABULARY[text[PRONOUN]] == "সে") == bool(answer < children)
    assert 0.4 < (rows[:, 0] == rows[:, -1]).float().mean() < 0.6, "the place does not tell who is meant"
    assert spelled(torch.tensor([0, 16, 24, 8, 17, 25, 26, 0])) == "রহিম ঘাটে, শিক্ষক মাঠে। সে রহিম।"


def test_a_silenced_head_says_nothing_and_speaks_again_afterwards() -> None:
    torch.manual_seed(0)
    model, rows = loud(coreference.make(TINY)), WhoIsIt(4).windows(16)
    every = list(looks(model, rows))
    assert len(every) == 2 * TINY.n_heads
    before = model(rows[:, :-1])
    with silence(model, every):
        at_pronoun = model(rows[:, :-1])[:, PRONOUN]
        same = rows[:, PRONOUN] == rows[0, PRONOUN]
        assert torch.allclose(at_pronoun[same], at_pronoun[0].expand(int(same.sum()), -1)), "nobody looks back"
    assert torch.equal(model(rows[:, :-1]), before)
    assert 0 <= share_right(model, rows) <= 1


def test_an_echo_is_said_by_who_looks_back() -> None:
    echo = Echo(4, 12, 3)

    class Repeats(torch.nn.Module):
        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.one_hot(rows.roll(3, dims=1), 16).float()

    assert echo.share_right(Repeats()) == 1.0  # type: ignore[arg-type]
    assert Echo(4, 12, 2).share_right(Repeats()) < 0.3  # type: ignore[arg-type]


def test_digits_stand_where_they_should_and_elsewhere_where_none_stood() -> None:
    desk = DrawnDigits(50, 8)
    assert digits_of(desk.batch(0, 0)).max() < 10 and images_of(desk.batch(0, 0)).shape == (8, 1, SIDE, SIDE)
    home, away = (images_of(rows).mean(dim=0)[0] for rows in (desk.windows(), desk.elsewhere()))
    assert home[:8, :7].mean() > 5 * home[12:].abs().mean() and away[8:, 8:].mean() > 5 * away[:5].abs().mean()
    assert len({bitmap(digit).tobytes() for digit in range(10)}) == 10
    learned = {row.numpy().tobytes() for row in torch.cat([desk.batch(0, step) for step in range(20)])}
    assert len(learned) <= 50 and not learned & {row.numpy().tobytes() for row in desk.windows()}


def test_what_is_said_of_positions_put_otherwise() -> None:
    added, close = (
        row("added", held_out=[1.5, 1.5], token_width=[64.0]),
        row("q", held_out=[1.6, 1.4], token_width=[48.0]),
    )
    worse = row("h", held_out=[1.7, 1.7], token_width=[32.0])
    assert "Seeds disagree" in str(joined.read(added, close, worse)[0])
    assert "Adding loses nothing" in str(joined.read(added, worse)[0])
    assert "even a little better" in str(joined.read(worse, added)[0])


def test_what_is_said_of_residuals() -> None:
    good, bad = (
        {"held_out": [loss], "gradient": [size], "alike": [near]}
        for loss, size, near in ((1.5, 0.9, 0.1), (2.9, 0.01, 0.9))
    )
    worth, fades, blurred = residuals.read(row("a", **good), row("b", **bad), row("c", **good), row("d", **bad))
    assert "stays at 2.90" in str(worth) and "shrinks to 0.01" in str(fades) and "0.90 alike" in str(blurred)
    unclear, reaches = residuals.read(row("a", **bad), row("b", **good), row("c", **bad), row("d", **good))
    assert "Not every seed agrees" in str(unclear) and "the norms keep it" in str(reaches)


def test_what_is_said_of_dropout() -> None:
    rows = [
        row(key, learned=[learned], held_out=[loss], gap=[loss - learned])
        for key, learned, loss in (("none", 0.1, 3.0), ("tenth", 0.5, 2.5), ("fifth", 0.8, 2.0), ("half", 1.5, 2.2))
    ]
    said = dropout.read(rows)
    assert "learns its little text by heart" in str(said[0]) and "With 0.2 it is best" in str(said[1])
    assert "stays at 1.50" in str(said[2])
    assert "does not clearly help" in str(dropout.read([rows[2], rows[1], rows[0], rows[3]])[1])


def test_what_is_said_of_width() -> None:
    rows = [row(str(n), held_out=[loss], parameters=[10.0**n]) for n, loss in enumerate((2.5, 2.0, 1.8, 1.7), 1)]
    said = width.read(rows)
    assert (
        "Every doubling" in str(said[0]) and "only less and less gain" in str(said[1]) and "1000 times" in str(said[2])
    )
    assert "not every doubling" in str(width.read(rows[::-1])[0])


def test_what_is_said_of_heads_and_encoders() -> None:
    few, many = row("a", right=[0.5], attention=[9.0]), row("b", right=[0.9], attention=[9.0])
    assert "One head gets 50% right" in str(heads.read(few, many, many)[0])
    assert "Not every seed agrees" in str(heads.read(many, few, few)[0])
    decoder, filler = ({"hole": [a], "next": [b], "words": [c]} for a, b, c in ((1.4, 1.4, 0.8), (0.9, 2.0, 0.3)))
    sides, worse = encoder.read(row("d", **decoder), row("e", **filler))
    assert "has a loss of 0.90" in str(sides) and "Writing is the decoder's trade" in str(worse)
    early, too = encoder.read(row("d", **filler), row("e", **decoder))
    assert "not clearly better" in str(early) and "At what comes next" in str(too)


def test_what_is_said_of_the_pronoun() -> None:
    whole, half = ({"right": [a], "on_right": [b], "on_others": [c]} for a, b, c in ((1.0, 0.7, 0.1), (0.2, 0.2, 0.3)))
    said = coreference.read(row("a", **whole), row("b", **whole), row("c", **half), row("d", **whole))
    assert "in 100% of the texts" in str(said[0]) and "70% of its attention" in str(said[1])
    assert "hangs on the heads that look" in str(said[2])
    other = coreference.read(row("a", **half), row("b", **half), row("c", **whole), row("d", **half))
    assert (
        "train longer" in str(other[0]) and "No head looks mostly" in str(other[1]) and "not the same" in str(other[2])
    )


def test_what_is_said_of_lstm_and_cnn() -> None:
    fast, slow = (
        {"held_out": [a], "read": [b], "near": [c], "far": [c]} for a, b, c in ((1.5, 10.0, 1.0), (1.9, 5.0, 0.1))
    )
    quality, speed, reach = lstm.read(row("g", **fast), row("l", **slow))
    assert "transformer's loss on held-out text is 1.50" in str(quality) and "0.50 times" in str(speed)
    assert "The reach differs" in str(reach)
    turned = lstm.read(row("g", **slow), row("l", **fast))
    assert "nothing to envy" in str(turned[0]) and "train longer" in str(turned[2])
    low, high = ({"right": [a], "moved": [a]} for a in (0.2, 0.9))
    few, many, moved = vision.read(row("v", **low), row("c", **high), row("v", **high), row("c", **high))
    assert "CNN recognises 90%" in str(few) and "nearer to each other" in str(many) and "not every seed" in str(moved)
    assert "does the same everywhere" in str(vision.read(*(row("x", **each) for each in (high, low, low, high)))[2])
