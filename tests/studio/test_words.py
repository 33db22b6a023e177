"""The studio's texts: in both languages, with Bangla that follows the style guide."""

import json
import re
import unicodedata
from pathlib import Path

import pytest

from kotha.report.built import WORDS

ROOMS = sorted(path.stem for path in WORDS.glob("*.json"))
# Words for which a better one has been agreed.
# fmt: off
BANNED = [
    "টোকেনসমূহ", "টোকেনাইজ করা", "ভোকাবুলারি", "শব্দভাণ্ডার", "টুকরো", "সাবওয়ার্ড",
    "ক্যারেক্টার", "যুক্তাক্ষর", "নরমালাইজ", "স্প্লিট", "লিকেজ", "এম্বেডিং", "লেয়ার",
    "এটেনশন", "কজাল", "ঢাকা ঘর", "ঢাকা টোকেন", "ওয়েট", "পাশের পথ", "সম্ভাব্যতা",
    "প্রোবাবিলিটি", "পরামিতি", "ফেরার পথ", "ট্রেইন", "ট্রেনিং", "লার্নিং রেট", "ইটারেশন",
    "এপক", "সাধারণীকরণ", "ভ্যালিডেশন", "ভবিষ্যদ্বাণী", "প্রেডিকশন", "জেনারেট", "উৎপন্ন",
    "কনটেক্সট", "মিলিয়ন", "বিলিয়ন", "অনুগ্রহ", "পুনরায়", "দ্বারা", "নিম্নলিখিত", "ব্যর্থ",
    "অবৈধ", "দুঃখিত", "ব্যবহারকারী", "অভিনন্দন", "দারুণ",
]
# fmt: on
FORMULA = re.compile(r"[`=×/^√→]|\(\s*\{|\de[-+]?\d")
NAMES = re.compile(r"\{\w+\}|\b[A-Za-z][\w-]*\d[\w-]*|top-[kp]|\bF1\b")


def entries() -> list[tuple[str, str, dict[str, str]]]:
    return [
        (room, key, entry)
        for room in ROOMS
        for key, entry in json.loads((WORDS / f"{room}.json").read_text(encoding="utf-8")).items()
    ]


@pytest.mark.parametrize("room", ROOMS)
def test_every_word_is_there_in_both_languages(room: str) -> None:
    found = json.loads((WORDS / f"{room}.json").read_text(encoding="utf-8"))
    for key, entry in found.items():
        assert set(entry) == {"en", "bn"}, key
        assert all(text.strip() for text in entry.values()), key
        filled = [set(re.findall(r"\{(\w+)\}", entry[language])) for language in ("en", "bn")]
        same = (
            filled[1] <= filled[0] if room == "messages" else filled[0] == filled[1]
        )  # in messages, the Bangla text may omit placeholders
        assert same, f"{key}: both languages are filled in with the same"


def test_the_bangla_is_the_house_s_own() -> None:
    for room, key, entry in entries():
        bangla = entry["bn"]
        where = f"{room}.json, {key}: {bangla}"
        assert unicodedata.is_normalized("NFC", bangla), where
        assert not [word for word in BANNED if word in bangla], where
        assert "!" not in bangla and "ঃ " not in bangla and " ।" not in bangla, where


def test_a_sentence_has_one_kind_of_digit() -> None:
    for room, key, entry in entries():
        for sentence in re.split(r"(?<=[।?])\s", entry["bn"]):
            bare = NAMES.sub("", sentence)
            kinds = {"latin"} if re.search(r"[0-9]", bare) else set()
            kinds |= {"bangla"} if re.search(r"[০-৯]", bare) else set()
            assert len(kinds) < 2, f"{room}.json, {key}: {sentence}"
            if kinds == {"latin"}:
                assert FORMULA.search(sentence), f"{room}.json, {key}: Bangla digits in prose: {sentence}"


def test_no_page_is_built_of_words_of_its_own() -> None:
    """Bangla text belongs in the catalogue, not in components; the product's name and digits are exempt."""
    web = Path(__file__).parents[2] / "web" / "src"
    for path in [*web.rglob("*.svelte"), *web.rglob("*.ts")]:
        if path.name == "message.ts":  # the units, as in `i18n/numbers.py`
            continue
        text = path.read_text(encoding="utf-8").replace("কথা", "").replace("০১২৩৪৫৬৭৮৯", "").replace("[০-৯]", "")
        spoken = [line.strip() for line in text.splitlines() if re.search(r"[\u0980-\u09ff]", line)]
        allowed = [line for line in spoken if line.startswith(("//", "*", "/**", "<!--")) or "known:" in line]
        assert spoken == allowed, f"{path.name}: {set(spoken) - set(allowed)}"
