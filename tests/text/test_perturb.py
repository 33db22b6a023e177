"""Text perturbations change the requested share, are reproducible, keep aksharas complete, and keep words in place."""

import pytest

from kotha.errors import UsageError
from kotha.text.akshara import aksharas
from kotha.text.perturb import PERTURBATIONS, perturb, romanized
from kotha.text.stories.corpus import story

TEXT = "\n".join(story(3, index).text for index in range(5))


@pytest.mark.parametrize("kind", PERTURBATIONS)
def test_perturbations_change_the_text_reproducibly(kind: str) -> None:
    changed = perturb(TEXT, kind)
    assert changed == perturb(TEXT, kind) != TEXT
    if kind != "punctuation":
        assert len(changed.split()) == len(TEXT.split()) and changed.count("\n") == TEXT.count("\n")


@pytest.mark.parametrize("kind", ["spelling", "typos"])
def test_about_the_requested_share_of_words_changes(kind: str) -> None:
    before = TEXT.split()
    found = {
        share: sum(a != b for a, b in zip(before, perturb(TEXT, kind, share=share).split(), strict=True))
        for share in (0.1, 0.5, 1.0)
    }
    assert found[0.1] < found[0.5] < found[1.0]
    assert found[1.0] > 0.6 * len(before) and found[0.1] < 0.15 * len(before)
    assert perturb(TEXT, kind, seed=1) != perturb(TEXT, kind, seed=2)


def test_a_typo_changes_one_complete_akshara_per_word() -> None:
    for before, after in zip(TEXT.split(), perturb(TEXT, "typos", share=1.0).split(), strict=True):
        letters, slipped = list(aksharas(before)), list(aksharas(after))
        assert set(slipped) <= set(letters) and abs(len(letters) - len(slipped)) <= 1, (before, after)
    for before, after in zip(TEXT.split(), perturb(TEXT, "spelling", share=1.0).split(), strict=True):
        assert len(list(aksharas(before))) == len(list(aksharas(after))), (before, after)


def test_latin_letters_read_as_people_write_them() -> None:
    romanization = {
        "আমার সোনার বাংলা।": "amar sonar bangla.",
        "নদীর ধারে": "nodir dhare",
        "কলম": "kolom",
        "বসলে": "bosle",
        "রাষ্ট্র": "rashtro",
        "মেয়ে বড়": "meye bor",
        "১২টি": "12ti",
        "Dhaka": "Dhaka",
    }
    assert {text: romanized(text) for text in romanization} == romanization
    assert not any("\u0980" <= letter <= "\u09ff" for letter in perturb(TEXT, "latin"))
    composed = "ব\u09dc"  # one code point for ড়, as some keyboards write it
    assert perturb(composed, "latin") == "bor"


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(UsageError, match="kind='speling' is not a valid choice; did you mean 'spelling'"):
        perturb("ক", "speling")
    with pytest.raises(UsageError, match="share=0"):
        perturb("ক", "typos", share=0)
