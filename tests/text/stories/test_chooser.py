"""Probabilities: every outcome of a small grammar, enumerated."""

import math
from collections.abc import Iterator

import pytest
from tests.text.stories.conftest import Replay

from kotha.text.stories.lexicon import Noun
from kotha.text.stories.plot import cast_roles, compile_template, tidy
from kotha.text.stories.scene import Chooser, Scene

TABLES = {
    "name": (Noun("রহিম", "সে"), Noun("উমা", "তিনি"), Noun("টুনি", "সে")),
    "crop": (
        Noun("ধান", parts={"least": (Noun("4"),), "most": (Noun("6"),), "price": (Noun("20"), Noun("30"))}),
        Noun("পাট", parts={"least": (Noun("2"),), "most": (Noun("3"),), "price": (Noun("50"),)}),
    ),
    "pet": (Noun("হাঁস", parts={"eats": (Noun("ধান"), Noun("শামুক"))}), Noun("টিয়া", parts={"eats": (Noun("ছোলা"),)})),
}


def outcomes(template: str, cast: str = "") -> Iterator[tuple[str, float]]:
    """Return every text that a template can produce, with its probability, by enumerating all sequences of choices."""
    write, roles = compile_template(template, {"greeting": "[?ও ]{$}"}), cast_roles(cast)
    script: list[int] | None = []
    while script is not None:
        chooser = Replay(script)
        yield tidy(write(Scene(chooser, TABLES, roles))), math.exp(chooser.log_probability)
        answers = (script + [0] * len(chooser.asked))[: len(chooser.asked)]
        while answers and answers[-1] + 1 == chooser.asked[len(answers) - 1]:
            answers.pop()
        script = [*answers[:-1], answers[-1] + 1] if answers else None


@pytest.mark.parametrize(
    ("template", "cast", "count"),
    [
        ("[ক|খ|গ]", "", 3),
        ("[?ক|খ] গ", "", 3),
        ("[2~ক|খ|গ]", "", 6),
        ("{name}, {name2} আর {name}", "", 6),
        ("{pet}টি {pet.eats} খায়[?, {pet.eats} খায়]", "", 6),
        ("{a টি} থেকে {b টি} গেলে {c টি}", "a: 3..5; b: 1..a-1; c: a-b", 9),
        ("{name} [{করা past name}|{যাওয়া past name}]", "", 6),
        ("{crop} {per} মণ", "per: crop.least..crop.most", 5),
        ("{crop} {price}, {count টি} {cost অঙ্ক}", "price: crop.price; count: 2; cost: price*count", 3),
        ("[<greeting name>|[ক|খ] {name}]", "", 12),
    ],
)
def test_probabilities_of_all_texts_sum_to_one(template: str, cast: str, count: int) -> None:
    texts, probabilities = zip(*outcomes(template, cast), strict=True)
    assert len(set(texts)) == len(texts) == count, "two ways to make one text"
    assert sum(probabilities) == pytest.approx(1)


def test_a_second_word_is_chosen_among_the_remaining() -> None:
    assert dict(outcomes("{name} {name2}"))["উমা রহিম"] == pytest.approx(1 / 6)


def test_weighted_choice_keeps_its_probability() -> None:
    counts = [0, 0]
    for seed in range(4000):
        chooser = Chooser(str(seed))
        chosen = chooser.weighted([3, 1])
        counts[chosen] += 1
        assert math.exp(chooser.log_probability) == pytest.approx((0.75, 0.25)[chosen])
    assert counts[0] / 4000 == pytest.approx(0.75, abs=0.03)


def test_choices_are_uniform() -> None:
    counts = [0] * 5
    for seed in range(5000):
        counts[Chooser(str(seed)).below(5)] += 1
    assert min(counts) > 850


def test_a_part_may_not_come_before_its_owner() -> None:
    write = compile_template("{pet.eats}", {})
    with pytest.raises(AssertionError, match=r"pet\.eats is mentioned before pet"):
        write(Scene(Chooser("0"), TABLES, {}))


def test_only_people_can_be_subjects() -> None:
    with pytest.raises(AssertionError, match="which is not a person"):
        compile_template("{pet} {করা past pet}", {})(Scene(Chooser("0"), TABLES, {}))


def test_an_exhausted_table_starts_again() -> None:
    scene = Scene(Chooser("0"), TABLES, {})
    name, table = next((name, table) for name, table in TABLES.items() if table)
    words = {noun.text for noun in table}
    drawn = [scene.draw(f"{name}{turn}").text for turn in range(2 * len(table))]
    assert set(drawn[: len(table)]) == words, "none comes twice before all have come once"
    assert set(drawn) == words
