"""Conclusions follow from the figures, in both languages."""

from collections.abc import Sequence

import pytest

from kotha.course.lessons.catalogue import lesson
from kotha.course.lessons.result import row_of
from kotha.course.lessons.runner import MeasuredLesson
from kotha.i18n.catalogue import translate

Figures = dict[str, Sequence[float]]


def row(names: str, *values: float | list[float]) -> Figures:
    """Build figures by name, each for one seed or several."""
    pairs = zip(names.split(), values, strict=True)
    return {name: value if isinstance(value, list) else [value] for name, value in pairs}


def rows(keys: str, *figures: Figures) -> dict[str, Figures]:
    return dict(zip(keys.split(), figures, strict=True))


def masked(*values: float) -> Figures:
    return row("held_out blind words", *values)


def moved(*values: float | list[float]) -> Figures:
    return row("held_out moved", *values)


ONE, TWO = moved([1.5, 1.6], [0.5, 0.5]), moved([1.4, 1.4], [0.6, 0.6])
ADDED, CLOSE, WORSE = (
    row("held_out token_width", *each) for each in (([1.5, 1.5], 64.0), ([1.6, 1.4], 48.0), ([1.7, 1.7], 32.0))
)
KEPT, LOST = (row("held_out gradient alike", *each) for each in ((1.5, 0.9, 0.1), (2.9, 0.01, 0.9)))
DROPPED = [row("learned held_out gap", a, b, b - a) for a, b in ((0.1, 3.0), (0.5, 2.5), (0.8, 2.0), (1.5, 2.2))]
WIDE = [row("held_out parameters", loss, 10.0**n) for n, loss in enumerate((2.5, 2.0, 1.8, 1.7), 1)]
FEW, MANY = row("right attention", 0.5, 9.0), row("right attention", 0.9, 9.0)
DECODER, FILLER = (row("hole next words", *each) for each in ((1.4, 1.4, 0.8), (0.9, 2.0, 0.3)))
WHOLE, HALF = (row("right on_right on_others", *each) for each in ((1.0, 0.7, 0.1), (0.2, 0.2, 0.3)))
FAST, SLOW = (row("held_out speed near far", *each) for each in ((1.5, 10.0, 1.0, 1.0), (1.9, 5.0, 0.1, 0.1)))
NEAR = row("held_out speed near far", [1.8, 1.4], 10.0, 1.0, 0.4)
WRITES, SAME, BABBLE = (
    row("right grammatical different", *each) for each in ((1.0, 1.0, 200.0), (0.0, 1.0, 1.0), (0.0, 0.0, 9.0))
)
LOW, HIGH = row("right moved", 0.2, 0.2), row("right moved", 0.9, 0.9)
FOUR = "one_with one_without two_with two_without"
DEPTHS = "shallow_with shallow_without deep_with deep_without"
SILENCED = "whole without_best without without_other"
PICTURES = "vit_few cnn_few vit_many cnn_many"
RATES, WIDTHS = "none tenth fifth half", "eighth quarter half whole"

# A lesson, figures, and a part of each expected sentence; None: any sentence.
CASES: list[tuple[str, dict[str, Figures], list[str | None]]] = [
    (
        "mask",
        rows("with without", masked(1.5, 1.5, 0.8), masked(0.1, 7.0, 0.05)),
        [
            "Without the mask, the loss falls to 0.10",
            "7.00, compared with 1.50 with the mask; of the words that it writes, 5% exist",
        ],
    ),
    (
        "mask",
        rows("with without", masked(1.5, 1.5, 0.8), masked(1.4, 1.4, 0.8)),
        ["has not found out", "can still write"],
    ),
    (
        "positions",
        rows(FOUR, ONE, moved([2.0, 2.0], [0.0, 0.0]), TWO, moved([1.9, 1.9], [0.2, 0.2])),
        ["To", "1.55, without 2.00", "Two"],
    ),
    (
        "positions",
        rows(FOUR, ONE, moved([1.55, 1.55], [0.0, 0.0]), TWO, moved([1.9, 1.9], [0.0, 0.0])),
        [None, "Not every seed agrees"],
    ),
    ("joined", rows("added quarter half", ADDED, CLOSE, WORSE), ["Seeds disagree", None]),
    ("joined", rows("added quarter half", ADDED, WORSE, WORSE), ["Adding loses nothing", None]),
    ("joined", rows("added quarter half", WORSE, ADDED, ADDED), ["even a little better", None]),
    ("residuals", rows(DEPTHS, KEPT, LOST, KEPT, LOST), ["stays at 2.90", "shrinks to 0.01", "a similarity of 0.90"]),
    ("residuals", rows(DEPTHS, LOST, KEPT, LOST, KEPT), ["Not every seed agrees", "the norms keep it"]),
    (
        "dropout",
        rows(RATES, *DROPPED),
        ["memorises its small training set", "A dropout of 0.2 gives", "stays at 1.50"],
    ),
    ("dropout", rows(RATES, DROPPED[2], DROPPED[1], DROPPED[0], DROPPED[3]), [None, "does not clearly help", None]),
    ("width", rows(WIDTHS, *WIDE), ["Every doubling", "only less and less gain", "1000 times"]),
    ("width", rows(WIDTHS, *WIDE[::-1]), ["not every doubling", "times the parameters"]),
    ("heads", rows("one two four", FEW, MANY, MANY), ["One head gets 50% right", None]),
    ("heads", rows("one two four", MANY, FEW, FEW), ["Not every seed agrees", None]),
    ("encoder", rows("decoder encoder", DECODER, FILLER), ["has a loss of 0.90", "The decoder is better at writing"]),
    ("encoder", rows("decoder encoder", FILLER, DECODER), ["not clearly better", "At the next token"]),
    (
        "coreference",
        rows(SILENCED, WHOLE, WHOLE, HALF, WHOLE),
        ["in 100% of the texts", "70% of its attention", "depends on the heads that attend"],
    ),
    (
        "coreference",
        rows(SILENCED, HALF, HALF, WHOLE, HALF),
        ["train longer", "No head attends mostly", "not necessarily needed"],
    ),
    # No sentence contradicts a figure, whatever the figures are.
    (
        "dropout",
        rows(RATES, *[row("learned held_out gap", 2.9, 3.0, 0.1)] * 4),
        ["has not memorised", "does not clearly"],
    ),
    (
        "residuals",
        rows(
            DEPTHS,
            KEPT,
            LOST,
            row("held_out gradient alike", 1.5, 0.1, 0.1),
            row("held_out gradient alike", 2.9, 0.2, 0.9),
        ),
        [None, "gradient is 0.20 times the last block's without residuals and 0.10 times", None],
    ),
    (
        "coreference",
        rows(SILENCED, WHOLE, HALF, HALF, WHOLE),
        [None, None, "Without the strongest head, 20% of the answers are right. Without the stronger half"],
    ),
    (
        "vision",
        rows(PICTURES, row("right moved", 0.5, 0.2), row("right moved", 0.6, 0.9), row("right moved", 0.9, 0.2), LOW),
        [None, "not brought the results closer", None],
    ),
    (
        "lstm",
        rows("gpt lstm", FAST, SLOW),
        [
            "transformer's loss on held-out text is 1.50, the LSTM's 1.90: higher by 0.40, and by 0.40 to 0.40",
            "The reach differs:",
            "0.50 times",
        ],
    ),
    ("lstm", rows("gpt lstm", SLOW, FAST), ["can do without attention", "not ahead with every seed", "2.00 times"]),
    (
        "lstm",
        rows("gpt lstm", row("held_out speed near far", [1.5, 1.5], 5.0, 1.0, 1.0), NEAR),
        [
            "seeds disagree about which is lower (LSTM minus transformer: -0.10 to 0.30)",
            "at a distance",
            "does not make it slower",
        ],
    ),
    (
        "mini",
        rows("with_mask without_mask", *(row("difference later moved", *each) for each in ((0, 0, 0), (0, 0.4, 0.5)))),
        ["NumPy and torch give the same", "change by 0.50 without the mask, and not at all with it"],
    ),
    (
        "mini",
        rows("with_mask without_mask", *[row("difference later moved", 0.1, 0.4, 0.5)] * 2),
        ["NumPy and torch differ by up to 0.1", "0.50 without the mask and by 0.50 with it"],
    ),
    (
        "cross",
        rows("whole encoder decoder cross", WRITES, WRITES, BABBLE, SAME),
        ["100% of the phrases", "grammatical but wrong", "100% of the phrases are right and 100% are grammatical"],
    ),
    (
        "cross",
        rows("whole encoder decoder cross", SAME, SAME, SAME, BABBLE),
        ["train longer", "only 0% are even", None],
    ),
    (
        "cross",
        rows("whole encoder decoder cross", SAME, SAME, SAME, row("right grammatical different", 0.0, 0.5, 1.0)),
        [None, "wrong, but not always grammatical", None],
    ),
    (
        "vision",
        rows(PICTURES, LOW, HIGH, HIGH, HIGH),
        ["CNN recognises 90%", "results are closer", "not better with every seed"],
    ),
    ("vision", rows(PICTURES, HIGH, LOW, LOW, HIGH), [None, None, "does the same at every position"]),
]


@pytest.mark.parametrize(("name", "figures", "expected"), CASES)
def test_conclusions_follow_from_the_figures(
    name: str, figures: dict[str, Figures], expected: list[str | None]
) -> None:
    result = MeasuredLesson(lesson(name)).read({key: row_of(key, key, each) for key, each in figures.items()})
    assert len(result) == len(expected)
    for sentence, part in zip(result, expected, strict=True):
        assert part is None or part in str(sentence), str(sentence)
        assert not {"{", "}"} & set(str(sentence) + translate(sentence, "bn"))


def test_bangla_has_its_own_digits() -> None:
    figures = {"with": masked(1.5, 1.5, 0.8), "without": masked(0.1, 7.0, 0.05)}
    read = MeasuredLesson(lesson("mask")).read({key: row_of(key, key, each) for key, each in figures.items()})
    assert "০.১০" in translate(read[0], "bn")
