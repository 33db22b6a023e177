"""Newcomers' mistakes are told in the reader's language, and nothing else changes."""

import subprocess
import sys

import pytest

from kotha.cli import spoken
from kotha.cli.main import main

MISTAKES = [
    (["trian"], "“trian” নামে কোনো কমান্ড নেই। “train” লিখতে চেয়েছিলেন?"),
    (["train"], "`train` কমান্ডে DATA দিতে হয়। দেখুন: kotha train --help"),
    (["plan", "--stps", "4"], "`--stps` নামে কোনো অপশন নেই। `--steps` লিখতে চেয়েছিলেন?"),
    (["plan", "--steps", "many"], "`--steps` একটি পূর্ণ সংখ্যা চায়; “many” চলবে না।"),
    (["inside", "lense"], "“lense” নামে কোনো কমান্ড নেই। “lens” লিখতে চেয়েছিলেন?"),
    (["generate", "nowhere"], "nowhere নামে কোনো ফোল্ডার নেই। রানের ফোল্ডারের নাম দিন"),
    (["doctor", "nowhere"], "nowhere: এখানে কোনো রান নেই। যে ফোল্ডারে প্রশিক্ষণ হয়েছে, সেটির নাম দিন।"),
    (["plan", "--preset", "bangla-58"], "“bangla-58” নামে কোনো প্রিসেট নেই। “bangla-58m” লিখতে চেয়েছিলেন?"),
    (["lessons", "run", "maks"], "“maks” নামে কোনো পাঠ নেই। “mask” লিখতে চেয়েছিলেন?"),
    (
        ["plan", "--preset", "bangla-58m", "--set", "n_heads=7"],
        "`d_model` = 512, একে `n_heads` = 7 দিয়ে ভাগ করলে ভাগশেষ থাকে। n_heads=8 অথবা d_model=560 দিন।",
    ),
    (["generate", "--temperature", "-1"], "`temperature` = -1.0 চলবে না। ০ (সব সময় সেরাটি) বা বেশি দিন"),
]


@pytest.mark.parametrize(("words", "told"), MISTAKES, ids=lambda each: " ".join(each) if isinstance(each, list) else "")
def test_a_newcomer_s_mistake_is_told_in_bangla(words, told, capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    code = main(words)
    english = capsys.readouterr().err
    assert told not in english and english.isascii()
    monkeypatch.setenv("KOTHA_LANGUAGE", "bn")
    assert main(words) == code != 0
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith(f"kotha: {told}") and shown.err.count("\n") == 1


def test_what_was_typed_stays_as_it_was_typed(capsys, monkeypatch) -> None:
    """A folder called 2024 is no number of things."""
    monkeypatch.setenv("KOTHA_LANGUAGE", "bn")
    main(["doctor", "2024"])
    assert capsys.readouterr().err.startswith("kotha: 2024: এখানে")


def test_the_flag_comes_before_the_variable_and_english_after_both(monkeypatch) -> None:
    assert spoken.asked_language(["lessons"]) == "en"
    monkeypatch.setenv("KOTHA_LANGUAGE", "bn")
    assert spoken.asked_language(["lessons"]) == "bn"
    assert spoken.asked_language(["lessons", "--language", "en"]) == "en"
    monkeypatch.setenv("KOTHA_LANGUAGE", "en")
    assert spoken.asked_language(["lessons", "--language=bn"]) == "bn"
    assert spoken.asked_language(["corpus", "inspect", "x.txt", "--language", "bn"]) == "en", "that is the corpus's"
    monkeypatch.setenv("KOTHA_LANGUAGE", "fr")
    assert spoken.asked_language(["lessons"]) == "en"


def test_the_language_ends_with_the_command(monkeypatch) -> None:
    main(["lessons", "run", "nothing", "--language", "bn"])
    assert spoken.spoken_language() == "en" and spoken.said("there is no lesson 'x'; known: y").isascii()


def test_a_sentence_without_a_form_stays_as_it_came(monkeypatch) -> None:
    with spoken.speaking(["lessons", "--language", "bn"]):
        assert spoken.said("the moon is not reachable from here") == "the moon is not reachable from here"
        assert spoken.said("stopped at step 1,234,567 and saved; go on with: kotha train d").startswith(
            "১২,৩৪,৫৬৭ নম্বর ধাপে থেমেছে"
        )


def test_english_reads_no_catalogue() -> None:
    """Starting up costs who reads English nothing, and help costs nobody anything."""
    code = (
        "import sys; from kotha.cli import spoken; from kotha.cli.main import main; main(['trian']);"
        "assert spoken._forms.cache_info().misses == 0; assert 'rich' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stderr=subprocess.DEVNULL)
