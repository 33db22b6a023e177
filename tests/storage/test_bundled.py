"""The bundled model: complete, small, included in the wheel, and the default; its card has the measured figures."""

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
from benchmarks.bundled_card import card
from benchmarks.bundled_openings import Openings, begun_elsewhere, last_reading, phrases, sentences
from benchmarks.bundled_text import passages, plain, prose_of_lead, prose_of_work, split
from hatchling.builders.wheel import WheelBuilder

import kotha
from kotha.artifacts import model_folder as bundle
from kotha.cli.main import main
from kotha.storage import bundled

ROOT = Path(__file__).parents[2]
FILES = [bundle.CONFIG_FILE, bundle.WEIGHTS_FILE, "tokenizer.json", bundled.CARD_FILE]
MOST_BYTES = 16_000_000


@pytest.fixture(scope="module")
def lm() -> kotha.LanguageModel:
    return kotha.load()


def test_it_is_complete_and_small() -> None:
    assert bundle.load(bundled.FOLDER).config.family == "gpt"
    assert bundle.stored_type(bundled.FOLDER) == "int8"
    assert sum((bundled.FOLDER / name).stat().st_size for name in FILES) <= MOST_BYTES


def test_the_wheel_contains_it() -> None:
    packed = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    assert {f"kotha/storage/bundled/{name}" for name in FILES} <= packed


def test_importing_kotha_does_not_touch_it() -> None:
    heavy = ("torch", "safetensors", "kotha.storage.bundled")
    code = f"import sys, kotha; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_the_card_has_the_measured_figures() -> None:
    assert (bundled.FOLDER / bundled.CARD_FILE).read_text(encoding="utf-8") == card()


@pytest.fixture
def beside_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory for the commands: a folder with a text file."""
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("নদীর ধারে একটি গ্রাম।", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ["generate", "আমি", "--tokens", "5"],
        ["generate", "--tokens", "5"],
        ["generate", "box", "আমি", "--tokens", "5"],
        ["inside", "attention", "--text", "নদীর ধারে"],
        ["inside", "flow", "--text", "নদীর ধারে"],
        ["inside", "lens", "--text", "নদীর ধারে"],
        ["inside", "trace", "--text", "নদীর ধারে", "--layer", "0"],
        ["inside", "heads", "--text", "নদীর ধারে একটি গ্রাম। গ্রামের নাম নদী।"],
        ["inside", "worksheet", "--text", "নদীর ধারে"],
        ["inside", "embeddings", "box", "মা"],
        ["evaluate", "box", "--text", "নদীর ধারে একটি গ্রাম।"],
        ["evaluate", "box", "text.txt"],
        ["compare", "box", "--text", "text.txt"],
        ["export", "--to", "hf", "--out", "hf", "--text", "text.txt"],
        ["card"],
    ],
)
def test_commands_work_without_training(words: list[str], capsys: Any, beside_a_text: Path) -> None:
    assert main(words) == 0, capsys.readouterr().err
    assert str(bundled.FOLDER) not in capsys.readouterr().out, "it is called box"
    if words[0] == "export":
        handed_on = (beside_a_text / "hf" / bundled.CARD_FILE).read_text(encoding="utf-8")
        assert 'license: "cc-by-sa-4.0"' in handed_on and "bn.wikipedia.org" in handed_on


@pytest.mark.parametrize(
    ("words", "code", "wording"),
    [
        (
            ["generate", "runn"],
            2,
            "runn not found; specify a run folder, or to use it as a prompt, run: kotha generate box runn",
        ),
        (["evaluate"], 2, "evaluate needs RUN"),
        (["evaluate", "box"], 2, "evaluate needs PATH or --text"),
        (["evaluate", "box", "x", "--text", "নদী"], 2, "give either PATH or --text, not both"),
        (["doctor", "box"], 1, "no run in box; specify the folder of a training run"),
        (["card", "."], 1, ". is not a model folder: it has no config.json"),
        (["card", "runn"], 1, "runn not found; specify a run folder or a model folder"),
        (["generate", "আমি", "ভাত", "খাই"], 2, "unexpected argument খাই; put quotes around text that contains spaces"),
        (["inside", "heads"], 2, "the training data of box was not found; give --text … or a path"),
    ],
)
def test_mistakes_give_a_message(
    words: list[str], code: int, wording: str, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == code
    output = capsys.readouterr().err
    assert wording in output and output.count("\n") == 1


def test_a_file_name_is_not_taken_for_a_text(capsys: Any, beside_a_text: Path) -> None:
    assert main(["evaluate", "box", "--text", "text.txt"]) == 2
    assert "--text takes the text itself, but text.txt is a file" in capsys.readouterr().err


def test_bangla_is_printed_in_any_locale(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kotha", "card"]
    found = subprocess.run(
        command, env={**os.environ, "PYTHONIOENCODING": "latin-1"}, capture_output=True, cwd=tmp_path
    )
    assert found.returncode == 0 and "আমি" in found.stdout.decode("utf-8"), found.stderr


def test_a_folder_named_box_gives_a_remark(capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("box").mkdir()
    assert main(["generate", "box", "আমি", "--tokens", "1"]) == 0
    assert "box is the bundled model; to use the local folder, write ./box" in capsys.readouterr().err


def test_python_loads_it_by_default(lm: kotha.LanguageModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert repr(lm).startswith("LanguageModel('box': gpt, ")
    text = lm.generate("আমি", tokens=5)
    assert text.startswith("আমি") and kotha.load("box").generate("আমি", tokens=5) == text
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kotha.KothaError, match="box not found; give a run"):
        kotha.load(Path("box"))


def test_the_results_file_describes_the_packaged_model() -> None:
    found = json.loads((ROOT / "benchmarks" / "results" / "bundled_model.json").read_text(encoding="utf-8"))["figures"]
    assert found["bytes"] == {name: (bundled.FOLDER / name).stat().st_size for name in FILES[:3]}
    assert found["model"] == bundle.load(bundled.FOLDER).config.to_dict()


# -- its training data -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ("নদী (ইংরেজি: River [a]) হল স্রোত ।তার জল", "নদী হল স্রোত। তার জল"),
        ("সে বলিল , “ এসো। ”", "সে বলিল, “এসো।”"),
        ("তখন – রাত্রি  -- গভীর৷", "তখন — রাত্রি — গভীর।"),
    ],
)
def test_lines_are_joined_to_prose(found: str, wanted: str) -> None:
    assert plain(found) == wanted


def test_headings_verse_and_plays_are_removed() -> None:
    prose = "সেদিন নদীর ধারে মেলা বসিয়াছিল, এবং গ্রামের সকল লোক সেখানে উপস্থিত ছিল।"
    verse = "আমারে পড়েছে আজ ডাক,\nকথা কিছু বলতেই হবে।"
    assert prose_of_work(f"ছুটি\n\n{prose}\n\n{verse}\n\n“না।”") == [prose, "“না।”"]
    broken = "পাছে হাসপাতালে ধরিয়া লইয়া যায় এজন্য লোকে ডাক্তার ডাকিতে চাহিল না এবং ঘরের"
    assert prose_of_work(f"{broken}\nমধ্যে রহিল।") == [f"{broken} মধ্যে রহিল।"], "a page's end is no paragraph's"
    assert prose_of_work("শ্রীশ। তুমি যাও।\nবিপিন। আমি যাব না।\nশ্রীশ। কেন?") == [], "a play"


def test_only_the_lead_of_an_article_is_kept() -> None:
    lead = "মেলা হল নদীর ধারে বসা একটি বড় বাজার, যেখানে দূরের গ্রাম থেকে মানুষ আসে।"
    assert prose_of_lead(f"{lead}\n১. রহিম\n== ইতিহাস ==\n{lead}") == [lead]
    assert prose_of_lead(f"{lead} https://example.org দেখুন।") == []


def test_a_document_is_held_out_completely_or_not_at_all() -> None:
    works = [list(passages([f"{work} " * 300 for _ in range(9)])) for work in range(100)]
    parts = split({"tagore": works})
    learned, held_out = ({text.split()[0] for text in parts[part]["tagore"]} for part in ("train", "held_out"))
    assert len(held_out) == 2 and len(learned) == 98 and not learned & held_out


STORY = "এক গ্রামে থাকত রাজু। রাজু রোজ মাঠে যেত। মা বলতেন, “যাও। তাড়াতাড়ি ফিরো।” রাজু হাসত। সন্ধ্যা হলো। সবাই ঘরে ফিরল।"


class _OneOpening:
    """A replacement for random story openings that always returns the same one."""

    def before_a_story(self) -> str:
        return "গল্পটা এই।"

    def before_a_child(self, child: str) -> str:
        return f"ঘরের মধ্যে বসে {child} হাসল।"


def begun(story: str) -> set[str]:
    return {begun_elsewhere(story, _OneOpening(), Random(seed)) for seed in range(200)}


def test_stories_start_after_an_opening() -> None:
    assert "".join(sentences(STORY)) == STORY
    assert "মা বলতেন, “যাও। তাড়াতাড়ি ফিরো।” রাজু হাসত। " in sentences(STORY), "nobody is cut off in mid-speech"
    opened = {f"গল্পটা এই। {STORY}", "ঘরের মধ্যে বসে রাজু হাসল। " + STORY.partition(" রাজু। ")[2]}
    found = begun(STORY)
    assert opened | {STORY} < found
    assert all(STORY.endswith(text) for text in found - opened), "some begin later, behind nothing"


@pytest.mark.parametrize("story", ["নদীটি বড়। নদীতে মাছ আছে।", "মা এলেন। রাজু বলল, “এসো।” মা হাসলেন।"])
def test_no_child_acts_where_there_is_none_or_it_answers(story: str) -> None:
    assert f"গল্পটা এই। {story}" in begun(story)
    assert not any(text.startswith("ঘরের মধ্যে") for text in begun(story))


WORKS = [
    "ঘরের মধ্যে কেহ নাই। ঘরের মধ্যে আলো জ্বলে। রাত্রি হইল, কেহ আসিল না। সেই কথা শুনিয়া সকলে চুপ করিল।\n"
    "রাজা কহিলেন, “কোথায় যাও?”\nমাঝি কহিল, “ঘরে।”"
] * 2
LEADS = ["নদী হল জলের স্রোত, যা সাগরে যায়।", "এই গ্রন্থটি অনেক দিন আগে লেখা হয়েছিল।"]


def test_openings_are_of_every_kind() -> None:
    assert phrases(["ঘরের মধ্যে কেহ নাই। ঘরের মধ্যে আলো। মহেন্দ্র কহিল, ঘরের মধ্যে কে।"] * 2) == ["ঘরের মধ্যে"]
    drawn = Openings(WORKS, LEADS, Random(0))
    before_a_child = {drawn.before_a_child("রহিম") for _ in range(2000)}
    assert {
        "ঘরের মধ্যে",
        "রাত্রি হইল,",
        "সেই কথা শুনিয়া রহিম মাথা নাড়ল।",
        "“কোথায় যাও?” বলল রহিম।",
        "রহিমের একটি গরু ছিল।",
    } <= before_a_child
    before_a_story = {drawn.before_a_story() for _ in range(2000)}
    assert {
        "আমি শুনেছি,",
        "রাজা একটা গল্প বলছিলেন।",
        "মাঝি একটা গল্প বলছিল।",
        "ছোট মেয়েটি একটা গল্প বলছিল।",
        "নদী নিয়ে কথা হচ্ছিল। দাদু তখন একটা গল্প বললেন।",
        "এই গ্রন্থটি নিয়ে একটা গল্প আছে।",
        "ঘরের মধ্যে কেহ নাই। শোনো তবে।",
    } <= before_a_story
    assert not any("@" in text or "#" in text for text in before_a_child | before_a_story)


def test_part_of_the_other_text_is_used_again() -> None:
    reports = ["হাট বসে প্রতি মঙ্গলবার।"] * 5
    read = last_reading([STORY] * 99, reports, WORKS, LEADS)
    assert read[99:104] == reports, "as they were"
    assert len(read) > 104 and set(read[104:]) <= {*WORKS, *LEADS}
