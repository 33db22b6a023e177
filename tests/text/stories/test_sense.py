"""Consistency of generated documents: sums, weekdays, hours, seasons, places, and the words of a family.

The tests check ten thousand texts (fewer in the fast suite), the same number for each plot, with independent
arithmetic.
"""

import re

from tests.text.stories.conftest import ALL_PLOTS, Document, of

from kotha.text.stories.grammar import NUMBERS
from kotha.text.stories.lexicon import Noun, communities, lexicon, listed

FREE = ("শুক্রবার", "শনিবার")
SCHOOL = ("রবিবার", "সোমবার", "মঙ্গলবার", "বুধবার", "বৃহস্পতিবার")
WEEK = ("শনিবার", "রবিবার", "সোমবার", "মঙ্গলবার", "বুধবার", "বৃহস্পতিবার", "শুক্রবার")
LEXICON = lexicon()
HINDU, MUSLIM = (
    {name for kind in ("child", "man", "woman") for name in listed(communities()[of_them][kind])}
    for of_them in ("hindu", "muslim")
)
VALUES = {word: value for value, word in enumerate(NUMBERS)} | {"দু": 2}
N = r"([০-৯,ঁ-৾]+?)"  # a number, in words or in digits
LETTER = "[ঀ-৾]"


def value(written: str) -> int:
    return VALUES[written] if written in VALUES else int(written.replace(",", ""))


def numbers(pattern: str, text: str) -> list[int]:
    """The numbers that a pattern finds in a text; it must match."""
    match = re.search(pattern, text, re.DOTALL)
    assert match is not None, f"{pattern} is not in:\n{text}"
    return [value(group) for group in match.groups()]


def test_the_people_on_the_ferry_add_up(documents: list[Document]) -> None:
    for document in of(documents, "shared boat"):
        text = document.text
        (seats,) = numbers(rf"নৌকায় \S+ {N}জন বসতে পারে", text)
        (waiting,) = numbers(rf"ঘাটে যাত্রী ছিল {N}জন", text)
        room, people, over = numbers(rf"জায়গা {N}জনের, মানুষ {N}জন। {N}জনকে পরের খেপে", text)
        aboard, ashore = numbers(rf"নৌকায় উঠল {N}জন, ঘাটে রইল {N}জন", text)
        stay, again, later = numbers(rf"দুজন নামায় নৌকায় রইল {N}জন, [^।]* আবার হলো {N}জন। ঘাটে রইল {N}জন", text)
        (carried,) = numbers(rf"ফিরে এসে বাকি {N}জনকে পার", text)
        assert (room, people) == (seats, waiting) and waiting - seats == over == ashore, text
        assert aboard == seats and stay == aboard - 2 and again == stay + 2, text
        assert later == ashore + 2 == carried <= seats, "the second crossing takes them all"


def test_what_is_given_spent_and_eaten_adds_up(documents: list[Document]) -> None:
    for document in of(documents, "shared fruit"):
        had, gave, left = numbers(rf"। {N}টি থেকে {N}টি গেল, [^।]*? {N}টি।", document.text)
        (given,) = numbers(rf"এই {N}টা \S+ তোমার", document.text)
        (rest,) = numbers(rf"ঝুড়িতে রইল {N}টি", document.text)
        assert had - gave == left and left - given == rest > 1, document.text
        result = numbers(rf"“{N}টা ছিল, \S+ দিয়েছি {N}টা, \S+ {N}টা, তাই এখন {N}টা", document.text)
        assert result == [had, gave, given, rest]
    for document in of(documents, "fair money"):
        had, spent, left = numbers(rf"। {N} টাকা থেকে {N} টাকা গেল, হাতে রইল {N} টাকা", document.text)
        held, more, rest = numbers(rf"। {N} টাকা থেকে {N} টাকা দিয়ে \S+ হাতে থাকল {N} টাকা", document.text)
        assert had - spent == left == held and held - more == rest > 0, document.text
    for document in of(documents, "right change"):
        count, price, cost = numbers(rf"হিসাব করল: {N}টি \S+, একেকটা {N} টাকা, তাহলে মোট {N} টাকা", document.text)
        note, paid, change = numbers(rf"{N} টাকা থেকে {N} টাকা বাদ দিলে \S+ পাওয়ার কথা {N} টাকা", document.text)
        (wrong,) = numbers(rf"ফেরত দিলেন {N} টাকা", document.text)
        (extra,) = numbers(rf"{N} টাকা বেশি!", document.text)
        assert count * price == cost == paid < note and note - paid == change == wrong - extra, document.text
    for document in of(documents, "feast"):
        each, guests, eaten = numbers(rf"প্রত্যেকে খেলেন {N}টি, {N}জন মিলে {N}টি", document.text)
        made, gone, left = numbers(rf"{N}টি থেকে {N}টি গেলে থাকে {N}টি", document.text)
        assert each * guests == eaten == gone and made - gone == left > 0, document.text


def test_other_sums_are_right(documents: list[Document]) -> None:
    for document in of(documents, "storm shelter"):
        before, after = numbers(rf"আগে থেকেই {N}জন .*? দুজনকে নিয়ে হলো {N}জন", document.text)
        assert before + 2 == after
    for document in of(documents, "sapling"):
        then, years, now = numbers(rf"বয়স ছিল {N}।.*\n{N} বছর কেটে গেল। \S+ বয়স এখন {N}।", document.text)
        assert then + years == now
    for document in of(documents, "promise kept"):
        days, gone, left = numbers(rf"{N} দিনের মধ্যে .*তবে {N} দিনের মাথায়.*হাতে রইল আর {N} দিন", document.text)
        assert days - gone == left > 0
    for document in of(documents, "harvest"):
        land, per, total = numbers(rf"এ বছর {N} বিঘা .* গড়ে {N} মণ, সব মিলিয়ে {N} মণ", document.text)
        assert land * per == total
    for document in of(documents, "big fish"):
        rate, kilos, total = numbers(rf"কেজি {N} টাকা দরে {N} কেজি মাছের দাম পড়ে {N} টাকা", document.text)
        assert rate * kilos == total and [kilos] == numbers(rf"মাছ, ওজন {N} কেজি।", document.text)
    for document in of(documents, "market"):
        price, bought, count, cost = numbers(
            rf"এক ভাগের দাম {N} টাকা শুনে \S+ {N} ভাগ .*“তাহলে {N} ভাগের দাম {N} টাকা", document.text
        )
        assert bought == count and price * count == cost
    for document in of(documents, "contest"):
        first, second, gap = numbers(rf"পেয়েছে {N} নম্বর। {N} নম্বর পেয়ে দ্বিতীয় .*? মাত্র {N} নম্বর কম", document.text)
        assert first - second == gap


def test_there_is_no_school_on_a_free_day(documents: list[Document]) -> None:
    days = 0
    for document in of(documents, "new pupil", "tree planting"):
        assert not any(day in document.text for day in FREE), document.text
        days += any(day in document.text for day in SCHOOL)
    for document in of(documents, "found thing", "muddy road"):
        opening = next(part for part in document.text.split("\n") if re.search("স্কুল থেকে|মাসে .* হাটে", part))
        assert not any(day in opening for day in FREE), opening
        days += any(day in opening for day in SCHOOL)
    assert days >= 3 * len(documents) / ALL_PLOTS


def test_a_child_has_its_mornings_at_home_on_a_free_day(documents: list[Document]) -> None:
    days = 0
    for document in of(documents, "lost pet", "shared fruit", "right change", "feast", "sapling", "apprentice"):
        for day in re.findall(r"(?:সেদিন ছিল|দিনটি ছিল) (\S+)।|চলছে। এক (\S+) ", document.text):
            assert "".join(day) in FREE, document.text
            days += 1
    assert days >= 2 * len(documents) / ALL_PLOTS


def test_the_days_of_a_market_lie_three_or_four_apart(documents: list[Document]) -> None:
    for document in of(documents, "market"):
        match = re.search(r"হাট বসে প্রতি (\S+) আর (\S+)।", document.text)
        assert match is not None
        apart = (WEEK.index(match[2]) - WEEK.index(match[1])) % 7
        assert apart in (3, 4), document.text
        assert re.search(rf"এক ({match[1]}|{match[2]}) বিকেলে", document.text), "the child comes on a market day"


def test_the_weather_fits_the_time_of_day(documents: list[Document]) -> None:
    early, late = set(), set()
    for season in LEXICON["season"]:
        day, morning, afternoon = ({noun.text for noun in season.parts[hour]} for hour in ("day", "early", "late"))
        early |= morning - day
        late |= afternoon - day
    assert len(early) >= 12 and len(late) >= 12
    assert not any(re.search("বিকেল|দুপুর|পশ্চিম|পড়ন্ত", weather) for weather in early)
    assert not any(re.search("সকাল|ভোর|শিশির", weather) for weather in late)
    for document in of(documents, "lost pet", "shared fruit", "right change", "feast", "sapling"):
        assert not any(weather in document.text for weather in late), document.text
    for document in of(documents, "broken toy", "found thing", "shared boat"):
        assert not any(weather in document.text for weather in early), document.text
    for document in of(documents, "new pupil", "fair money", "promise kept", "apprentice"):
        assert not any(weather in document.text for weather in early | late), document.text


def community(name: str) -> str | None:
    """The community of a name, perhaps with a title after it; None if both communities use it."""
    first = name.split(" ")[0]
    return "Hindu" if first in HINDU else "Muslim" if first in MUSLIM else None


def occurring(text: str, words: str) -> set[str]:
    """The words that occur in a text, in any grammatical case."""
    return set(re.findall(rf"(?<!{LETTER})({words})(?:র|ের|ে|কে|তে|টা|ও|দের)?(?!{LETTER})", text))


def test_water_has_one_name_in_a_document_and_the_family_decides_which(documents: list[Document]) -> None:
    drunk = {"পানি": 0, "জল": 0}
    for document in documents:
        names = occurring(document.text, "পানি|কোমরপানি|জল|হাঁটুজল|কোমরজল")
        water = {name.removeprefix("কোমর").removeprefix("হাঁটু") for name in names}
        assert len(water) <= 1, document.text
        for name in water:
            drunk[name] += 1
            hero = document.scene.filled.get("hero")
            hindu = document.kind == "story" and isinstance(hero, Noun) and community(hero.text) == "Hindu"
            assert name == ("জল" if hindu else "পানি"), document.text
    assert min(drunk.values()) >= 0.03 * len(documents)


def test_no_family_uses_the_words_of_another(documents: list[Document]) -> None:
    own = {
        "Muslim": "আম্মা|আব্বা|দাদি|নানি|দাদা|খালা|ফুফু|চাচা|চাচি|মিয়া|মাগরিবের|ঈদ",
        "Hindu": "ঠাকুমা|দিদিমা|ঠাকুরদা|মাসি|পিসি|কাকা|কাকিমা|খুড়ো|জেঠু|সন্ধ্যাবাতি|পূজা",
    }
    heard = {"Muslim": 0, "Hindu": 0}
    for document in documents:
        people = {community(noun.text) for noun in document.scene.filled.values() if isinstance(noun, Noun)}
        for one, words in own.items():
            found = occurring(document.text, words)
            assert not found or one in people, f"{found} without anyone {one} in:\n{document.text}"
            heard[one] += bool(found)
        hero = document.scene.filled.get("hero")
        if isinstance(hero, Noun) and document.kind == "story":
            for one, words in (("Muslim", "মাগরিবের|ঈদ"), ("Hindu", "সন্ধ্যাবাতি|পূজা")):
                assert community(hero.text) == one or not occurring(document.text, words), document.text
    assert min(heard.values()) >= 0.1 * len(documents)


def test_harvested_crops_and_fruit_are_ripe(documents: list[Document]) -> None:
    crops = {
        "বোরো ধান": "বৈশাখ জ্যৈষ্ঠ", "ভুট্টা": "বৈশাখ", "তিল": "জ্যৈষ্ঠ আষাঢ়", "পাট": "আষাঢ় শ্রাবণ ভাদ্র",
        "আউশ ধান": "শ্রাবণ ভাদ্র", "আগাম আমন ধান": "আশ্বিন কার্তিক", "মাষকলাই": "কার্তিক অগ্রহায়ণ",
        "আমন ধান": "অগ্রহায়ণ পৌষ", "পেঁয়াজ": "পৌষ", "আলু": "মাঘ ফাল্গুন", "সরিষা": "মাঘ",
        "মসুর ডাল": "ফাল্গুন চৈত্র", "গম": "চৈত্র", "রসুন": "চৈত্র",
    }  # fmt: skip
    reaped = set()
    for document in of(documents, "harvest"):
        match = re.search(r"\n(\S+) মাসে .*(?:চলছে|হয়েছে) ([^।]*) (?:কাটার|তোলার) কাজ।", document.text)
        assert match is not None and match[1] in crops[match[2]].split(), document.text
        reaped.add(match[2])
    assert len(reaped) >= 10
    fruit = {
        "আম": "জ্যৈষ্ঠ আষাঢ়", "জামরুল": "বৈশাখ জ্যৈষ্ঠ", "পেয়ারা": "আষাঢ় শ্রাবণ ভাদ্র আশ্বিন",
        "আতা": "শ্রাবণ ভাদ্র আশ্বিন কার্তিক", "ডালিম": "আশ্বিন কার্তিক অগ্রহায়ণ", "কমলা": "অগ্রহায়ণ পৌষ মাঘ",
        "বরই": "পৌষ মাঘ ফাল্গুন চৈত্র", "সফেদা": "মাঘ ফাল্গুন চৈত্র বৈশাখ", "আনারস": "জ্যৈষ্ঠ আষাঢ় শ্রাবণ",
        "জাম্বুরা": "ভাদ্র আশ্বিন কার্তিক অগ্রহায়ণ", "বেল": "ফাল্গুন চৈত্র বৈশাখ",
        "পেঁপে": "পৌষ মাঘ ফাল্গুন চৈত্র বৈশাখ জ্যৈষ্ঠ",
    }  # fmt: skip
    for document in of(documents, "shared fruit", "right change"):
        month = re.search(r"(\S+) মাস[ ে।]|(\S+) মাসের এক", document.text)
        eaten = re.search(r"মোট \S+টি (\S+) হয়েছে|হিসাব করল: \S+টি (\S+),", document.text)
        assert month is not None and eaten is not None, document.text
        assert (month[1] or month[2]) in fruit[eaten[1] or eaten[2]].split(), document.text


def test_one_season_lasts_the_document(documents: list[Document]) -> None:
    months = {month.text: season.text for season in LEXICON["season"] for month in season.parts["month"]}
    month = re.compile(f"({'|'.join(months)}) মাস")
    for document in documents:
        if document.plot not in ("sapling", "boat race", "storm shelter", "relief"):
            named = {months[name] for name in month.findall(document.text)}
            assert len(named) <= 1, document.text


def test_rivers_flow_and_cyclones_land_where_they_can(documents: list[Document]) -> None:
    rivers = {noun.text: {river.text for river in noun.parts["river"]} for noun in LEXICON["district"]}
    coast = {"খুলনা", "বাগেরহাট", "বরিশাল", "ঝালকাঠি", "পটুয়াখালী", "বরগুনা", "ভোলা", "চাঁদপুর", "চট্টগ্রাম", "কক্সবাজার"}
    flowing = landed = 0
    for document in documents:
        district = document.scene.filled.get("district")
        if isinstance(district, Noun) and (match := re.search(r"(?:গেছে|জেলার|জেলায়) ([^।]{2,20}?) নদী", document.text)):
            assert any(match[1].endswith(river) for river in rivers[district.text]), document.text
            flowing += 1
        if document.plot == "relief" and "ঘূর্ণিঝড়" in document.text:
            assert isinstance(district, Noun) and district.text in coast, document.text
            landed += 1
    assert flowing >= 0.06 * len(documents) and landed >= 1
    assert not {"জলপাইগুড়ি", "নদীয়া", "বীরভূম", "বাঁকুড়া"} & rivers.keys(), "there Sunday is free, and water has another name"


def test_small_facts_are_correct(documents: list[Document]) -> None:
    tasted = baked = 0
    for document in documents:
        text = document.text
        assert not re.search(r"মাথার ওপর দিয়ে [^।]*ডেকে উঠল", text), "a bird flies over the head; it calls from a tree"
        assert not re.search(r"বলে (?:বলেন|বললেন)|(?:জানান|জানালেন), “", text), "জানান reports, বলেন quotes"
        assert "সোনাগাছি" not in text
        if taste := re.search(r"স্বাদে ([^।]*)।", text):
            assert re.search("মিষ্টি|টক|কষা", taste[1]), text
            tasted += 1
        if document.plot == "recipe" and re.match(r"(?:ভাপা|চিতই|পাটিসাপটা|তালের বড়া)", text):
            assert "চালের গুঁড়া" in text, "a rice cake is made of rice flour"
            baked += 1
    assert tasted >= len(documents) / ALL_PLOTS and baked >= 5
