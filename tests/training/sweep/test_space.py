"""Search ranges: parsed from text, rejected with reasons, and the default search."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kotha.errors import KothaError
from kotha.model.presets import preset
from kotha.training.config import recipe
from kotha.training.request import RunSetup
from kotha.training.sweep.space import SearchDimension, as_changes, default_of, in_words, read_search, usual_search

MINI = preset("mini")


class Lowest:
    """A trial that draws the lowest or first value, and records the calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def suggest_categorical(self, name, choices):
        self.calls.append((name, *choices))
        return choices[0]

    def suggest_int(self, name, low, high, *, log):
        self.calls.append((name, "int", low, high, log))
        return low

    def suggest_float(self, name, low, high, *, log):
        self.calls.append((name, "float", low, high, log))
        return low


def test_ranges_become_optuna_suggestions() -> None:
    words = ["learning_rate=1e-4..1e-2:log", "dropout=0,0.1,none", "n_layers=2..6", "schedule=cosine,constant"]
    source = Lowest()
    drawn = [each.draw(source) for each in read_search(words, MINI)]
    assert drawn == [1e-4, 0.0, 2, "cosine"]
    assert source.calls == [
        ("learning_rate", "float", 1e-4, 1e-2, True),
        ("dropout", 0.0, 0.1, None),
        ("n_layers", "int", 2, 6, False),
        ("schedule", "cosine", "constant"),
    ]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["learning_rat=1e-4..1e-2"], "did you mean 'learning_rate'?"),
        (["learning_rate"], "is not a search range"),
        (
            ["learning_rate=1e-2..1e-4"],
            "is not a range; write two numbers, the smaller one first; with :log, both must be above 0",
        ),
        (["learning_rate=1e-2..1e-2"], "is not a range"),
        (["learning_rate=0..1e-2:log"], "is not a range"),
        (["learning_rate=-1..1"], "learning_rate=-1.0 must be above 0"),
        (["learning_rate=1e-4..1e-2:lin"], "is not a search range"),
        (["learning_rate=a..b"], "is not a range"),
        (["learning_rate=1..inf"], "is not a range"),
        ([f"n_layers=1..1{'0' * 400}"], "is not a range"),
        (["n_layers=1.5..3"], "is not a range"),
        (["dropout=0.1"], "leaves nothing to search"),
        (["dropout=,"], "leaves nothing to search"),
        (["dropout=0,2"], "dropout=2.0 must be at least 0 and below 1"),
        (["schedule=cosine..constant"], "the values of schedule are not numbers"),
        (["schedule=cosine,cubic"], "schedule='cubic' is not a valid choice"),
        (["steps=10..20"], "steps determines how trials are timed or evaluated"),
        (["size=2..4"], "the values of size are not numbers; list them"),
        (["size=2x96,large"], "size=large is not of the form layers x width"),
        (["size=2x96,4x192", "n_layers=2..3"], "n_layers is also searched"),
        (["dropout=0,0.1", "dropout=0.2,0.3"], "dropout appears twice in the search"),
        (["weight_decay=0..1"], "weight_decay is both set and searched"),
    ],
)
def test_invalid_ranges_are_rejected_with_a_reason(words: list[str], reason: str) -> None:
    with pytest.raises(KothaError) as refused:
        read_search(words, MINI, {"weight_decay": 0.1})
    assert reason in str(refused.value)


@given(st.floats(1e-9, 1e9), st.floats(1.001, 1e3), st.booleans())
def test_a_range_can_be_parsed_again(low: float, factor: float, log: bool) -> None:
    searched = SearchDimension("learning_rate", low=float(f"{low:.9g}"), high=float(f"{low * factor:.9g}"), log=log)
    assert read_search([searched.words], MINI) == [searched]


@given(st.text(max_size=40))
def test_any_text_is_parsed_or_rejected(word: str) -> None:
    try:
        read_search([word], MINI)
    except KothaError as error:
        assert str(error)


def test_the_default_search_is_around_the_default_recipe() -> None:
    choice = RunSetup(MINI, recipe("modern"))
    found = {each.name: each for each in usual_search(choice, {"dropout": 0.1}, sizes_open=True)}
    assert list(found) == ["learning_rate", "muon_learning_rate", "weight_decay", "batch_size"], (
        "mini has no size of the ladder"
    )
    for name in ("learning_rate", "muon_learning_rate", "batch_size"):
        assert found[name].holds(default_of(name, choice))
    rate = recipe("modern").learning_rate
    assert (found["learning_rate"].low, found["learning_rate"].high) == (rate / 4, rate * 4)
    assert found["batch_size"].choices == (16, 32, 64)
    assert "muon_learning_rate" not in {
        each.name for each in usual_search(RunSetup(MINI, recipe("classic")), {}, False)
    }
    rung = MINI.replace(**as_changes({"size": "4x192"}))
    beside = usual_search(RunSetup(rung, recipe("modern")), {}, sizes_open=True)[-1]
    assert beside == SearchDimension("size", choices=("3x128", "4x192", "4x256"))
    assert default_of("size", RunSetup(rung, recipe("modern"))) == "4x192"


@pytest.mark.parametrize(("value", "expected"), [(2, True), (3, False), (10, False), (22, True), (40, False)])
def test_a_value_close_to_an_end_is_detected(value: int, expected: bool) -> None:
    assert SearchDimension("n_layers", low=2, high=22, whole=True).at_an_end(value) is expected
    assert not SearchDimension("n_layers", choices=(2, 22)).at_an_end(value), "a list of values has no ends"


def test_a_value_can_be_set_as_printed() -> None:
    from kotha.cli.options import from_words

    for value in (0.0001, 3, None, True, "muon"):
        assert from_words((f"name={in_words(value)}",)) == {"name": value}
