"""Newcomers' mistakes are told in the reader's language, and nothing else changes."""

import subprocess
import sys

import pytest

from kotha.cli import spoken
from kotha.cli.main import main
from kotha.cli.naming import in_flags
from kotha.errors import KothaError
from kotha.text.parallel import cluster

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
    (
        ["inside", "exercise", "99"],
        "`99` নামে কোনো প্রশ্ন নেই। `all`, `1` থেকে `12`, অথবা `7c` বা `10a` এর মতো একটি অংশ দিন।",
    ),
    (["inside", "exercise", "--seed", "-3"], "`--seed -3` চলবে না। ০ থেকে ৪২৯৪৯৬৭২৯৫ পর্যন্ত একটি সংখ্যা দিন।"),
    (["inside", "worksheet", "--size", "4x"], "`--size 4x` পড়া যায়নি। টোকেন, প্রস্থ আর হেডের প্রস্থ `4x6x3`-এর মতো লিখুন।"),
    (["inside", "worksheet", "--size", "99x2x1"], "৯৯টি টোকেনে কাগজে করার মতো শিট হয় না। ২ থেকে ১২ পর্যন্ত দিন।"),
    (["evaluate", "box", "x.txt", "--perturb", "typs"], "“typs” নামে লেখা বদলানোর কোনো উপায় নেই, কোনো ফাইলও নেই।"),
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


def test_an_empty_file_is_told_of_in_bangla(capsys, monkeypatch, tmp_path) -> None:
    (tmp_path / "empty.txt").touch()
    monkeypatch.chdir(tmp_path)
    assert main(["tokenizer", "train", "empty.txt", "--out", "tok", "--language", "bn"]) == 1
    assert capsys.readouterr().err.startswith("kotha: empty.txt: ফাইলটি ফাঁকা। ঠিক করে নিন।")


def test_the_model_in_the_box_is_known_where_it_is_of_no_use(capsys) -> None:
    for words in (["classify", "box", "আ"], ["fill", "box", "আ [MASK]"], ["translate", "box", "আ"]):
        assert main(words) != 0
        told = capsys.readouterr().err
        assert "gpt" in told and "there is no box" not in told


@pytest.mark.parametrize(
    ("x", "told"),
    [
        (
            "1\n0\n0.5",
            "X-এর প্রতি সারিতে মাত্র একটি সংখ্যা, অথচ W_Q-এর সারি ২টি। X-এর একটি সারির সব সংখ্যা একসঙ্গে লিখুন, যেমন `1, 0, 0.5`",
        ),
        ("1,0,1", "W_Q-এর সারি ২টি, X-এর কলাম ৩টি। দুটি সমান হতে হবে।"),
        ("1,0\n1", "X: ২ নম্বর সারিতে ১টি সংখ্যা, প্রথম সারিতে ২টি। সব সারিতে সমান সংখ্যা দিন।"),
        ("1,কত", "২ নম্বর লাইনের “কত” কোনো সংখ্যা নয়।"),
    ],
)
def test_a_matrix_of_one_s_own_that_does_not_fit_is_told_in_bangla(x, told, capsys, tmp_path) -> None:
    given = tmp_path / "own.csv"
    square = "1,0\n0,1"
    given.write_text(f"X\n{x}\n\nW_Q\n{square}\n\nW_K\n{square}\n\nW_V\n{square}\n", encoding="utf-8")
    assert main(["inside", "worksheet", "--given", str(given), "--language", "bn"]) != 0
    assert capsys.readouterr().err == f"kotha: {told}\n"


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


def test_a_variable_that_is_set_to_nothing_says_nothing(monkeypatch, capsys) -> None:
    assert main(["presets"]) == 0
    english = capsys.readouterr().out
    for nothing in ("", " "):
        monkeypatch.setenv("KOTHA_LANGUAGE", nothing)
        assert main(["presets"]) == 0 and capsys.readouterr().out == english
        assert main(["presets", "--language", "bn"]) == 0 and capsys.readouterr().out != english
    monkeypatch.setenv("KOTHA_LANGUAGE", "fr")
    assert main(["presets"]) == 2 and '"fr"' in capsys.readouterr().err


class _Away:
    """A Ray that is not there; of its own processes that do not begin it says no more than ``Exception``."""

    def init(self, address: str, **_: object) -> None:
        raise Exception("timed out") if address == "local" else ConnectionError("timed out")

    def shutdown(self) -> None:
        pass


@pytest.mark.parametrize(
    ("address", "told"),
    [
        (
            None,
            "এই যন্ত্রে Ray চালু করা যায়নি: timed out। আবার চেষ্টা করুন, অথবা Ray ছাড়া চালান: এই যন্ত্রের নিজের প্রক্রিয়াগুলোও একই কাজ করে।",
        ),
        (
            "head:10001",
            "head:10001 ঠিকানার Ray-তে পৌঁছানো যায়নি: timed out। "
            "প্রবেশের টোকেন চাইলে RAY_AUTH_MODE=token আর RAY_AUTH_TOKEN ঠিক করে দিন।",
        ),
    ],
)
def test_a_ray_that_cannot_be_reached_is_told_in_bangla(address, told) -> None:
    with pytest.raises(KothaError, match="could not be reached") as raised, cluster._connected(_Away(), address, 1):
        pass
    with spoken.speaking(["prepare", "--language", "bn"]):
        assert spoken.said(in_flags(str(raised.value))) == told


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
