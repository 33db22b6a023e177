"""Regression tests for problems that an editor found when reading two hundred documents aloud.

Examples are unsuitable places, things made of the wrong material, contradictory times and weather, replies without a
question, unnatural numbers, and phrases that no speaker of Bangla uses.
"""

import itertools
import re
from collections import Counter

from tests.text.stories.conftest import Document, of

from kotha.text.stories.lexicon import lexicon

DIGITS = str.maketrans("০১২৩৪৫৬৭৮৯", "0123456789")


def found(pattern: str, text: str) -> tuple[str, ...]:
    """The groups that a pattern finds in a text; it must match."""
    match = re.search(pattern, text)
    assert match is not None, f"{pattern} is not in:\n{text}"
    return match.groups()


def test_actions_fit_their_places(documents: list[Document]) -> None:
    for document in of(documents, "shared fruit"):
        assert "রইল মাত্র" not in document.text, "what is left may be nearly all"
        (garden,) = found(r"সঙ্গে ([^।]*) গেল।", document.text)
        assert re.search("(বাগান|ভিটা)", garden), f"nobody picks fruit in {garden}"
        assert not re.search("^(আম|লিচু|কলা|সুপারি|নারকেল)বাগান", garden), f"{garden} has fruit of its own"
    no_playground = "সাঁকো|পুলে|রাস্তা|রেলস্টেশন|গলি|ডাকঘর|খেত|কুয়া|মোড়|বাঁক|ঝাড়"
    for document in of(documents, "broken toy"):
        (place,) = found(r"বন্ধু \S+ ([^।]*) খেলতে এল", document.text)
        assert not re.search(no_playground, place), document.text
    for document in of(documents, "apprentice"):
        (place,) = found(r"রেখে ([^।]*) গিয়ে বসে থাকল", document.text)
        assert not re.search(no_playground, place), f"no bird builds over {place}"
        assert re.search(r"(কাছে|সেখানে) গিয়ে সাহস করে", document.text), "not every craftsman keeps a shop"
    for document in of(documents, "bird nest"):
        assert re.search(r"ভাবছিল [^।]* কাছের [^।]* গাছটার কথা", document.text), "no tree stands on a bridge"
    watched = 0
    for document in of(documents, "bird"):
        if document.text.startswith(("বক", "মাছরাঙা")):
            assert re.search("(ঘাট|পাড়|আল)(ে|তে|টিতে)? ", document.text), document.text
            assert not re.search("(কলা|আম|লিচু|সুপারি)বাগানে|সবজিখেতে", document.text), document.text
            watched += 1
    assert watched >= 2


def test_things_are_made_of_the_right_materials(documents: list[Document]) -> None:
    bodies = {
        "একতারা": "লাউয়ের খোল", "দোতারা": "কাঠ", "সারিন্দা": "কাঠ", "বাঁশি": "বাঁশ", "ঢোল": "কাঠের খোল", "ঢাক": "কাঠের খোল",
        "তবলা": "কাঠ", "মন্দিরা": "কাঁসা", "খঞ্জনি": "কাঠের বেড়", "হারমোনিয়াম": "কাঠ",
    }  # fmt: skip
    for document in of(documents, "instrument"):
        (stuff,) = found(r"তৈরি হয় ([^।]*) দিয়ে", document.text)
        assert bodies[document.text.split("\n")[0]] in stuff, document.text
        assert "চামড়ার যন্ত্র" not in document.text or "চামড়া" in stuff, "a drum has a skin"
        assert not re.search("^(বাঁশি|হারমোনিয়াম)", document.text) or "ফোসকা" not in document.text
        assert "সুর মিলত না" not in document.text or "তারের যন্ত্র" in document.text, "a drum has a beat and no tune"
    only = {
        "কাগজ": {"ঘুড়ি", "চরকি", "কাগজের মালা", "কাগজের ফুল"}, "ছানা": {"রসগোল্লা", "সন্দেশ", "পান্তুয়া", "চমচম"},
        "রং": {"পট", "আঁকা সরা", "রঙিন কুলা", "মুখোশ"}, "নিমকাঠ": {"দোতারা", "সারিন্দা", "খমক", "ঢোল"},
    }  # fmt: skip
    made = 0
    for document in of(documents, "workshop", "village fair"):
        if document.plot == "workshop":
            stuff, first, second = found(
                r"(?:কাজ|বিষয়)[^।]*। (.*) দিয়ে কীভাবে (.*?) আর (.*?) (?:তৈরি|বানাতে)", document.text
            )
        else:
            first, second, stuff = found(r"সামনে সাজানো ([^।]*) আর ([^।]*)। ([^।]*) দিয়ে", document.text)
        for name, things in only.items():
            if stuff.endswith(name):
                assert {first, second} <= things, document.text
                made += 1
    assert made >= 5


def test_the_time_of_day_fits_the_action(documents: list[Document]) -> None:
    for document in of(documents, "right change", "apprentice"):
        assert not re.search("মোরগ ডাকার|সূর্য উঠতে|ভোর হতেই|ভোরবেলা|খুব ভোরে", document.text), "the shop is still shut"
    for document in of(documents, "first letters"):
        assert not re.search(r"খাওয়ার পর[^\n]*রান্নাঘর থেকে আসত", document.text), "supper is over"
        assert not re.search(r"(দাওয়ায়|বারান্দায়)[^\n]*বসত[^\n]*জানালা দিয়ে", document.text), "they sit outside"
    for document in documents:
        if re.search("(পৌষ|মাঘ|কার্তিক|অগ্রহায়ণ) মাস", document.text):
            assert "ঘামে ভেজা" not in document.text, "nobody sweats in the cold"


def test_the_weather_is_consistent(documents: list[Document]) -> None:
    quarrels = [
        ("পাতাও নড়ছিল না", "হাওয়া|বাতাস|উড়ছিল"),
        ("মেঘে ঢেকে ছিল", "রোদ|রংধনু|নীল আকাশ"),
        ("রোদে কাঁপছিল", "সকাল|ভোর"),
    ]
    pairs = 0
    for season, hour in itertools.product(lexicon()["season"], ("day", "early", "late")):
        for one, other in itertools.permutations([noun.text for noun in season.parts[hour]], 2):
            pairs += 1
            for this, that in quarrels:
                assert not (this in one and re.search(that, other)), f"{one}, and yet {other}"
    assert pairs >= 500
    for document in of(documents, "new pupil"):
        assert "মাঠে ছুটল" not in document.text, "in the rains the field may be under water"


def test_replies_fit_what_was_said(documents: list[Document]) -> None:
    for document in of(documents, "first letters"):
        (doubt, reply) = found(r"বললেন, “\S+, ([^”]*)” \S+ [^“]*“([^”]*)”", document.text)
        assert not reply.startswith("হাসুক") or "হাসবে" in doubt, document.text
        (ground,) = found(r"(স্লেটে|বালির|খাতায়|কলাপাতার)[^।]* বড় বড় করে অক্ষর", document.text)
        for tool, needed in (("স্লেট তুলে", "স্লেটে"), ("খাতা খুললেন", "খাতায়"), ("কলম ধরলেন", "খাতায়")):
            assert tool not in document.text or ground == needed, document.text
    for document in of(documents, "fair money"):
        (wish,) = found(r"(\S+) (?:চড়ার|খাওয়ার|দেখার) ইচ্ছা ছিল", document.text)
        (later,) = re.findall(r"“(\S+) পরের বার হবে", document.text) or ["ওসব"]
        assert later == "ওসব" or wish.startswith(later), document.text
        kept, *_ = found(r"(ব্যাংকে|কৌটায়|থলেতে|চোঙায়) টাকা জমাচ্ছিল", document.text)
        assert "জমার কৌটায়" not in document.text or kept == "কৌটায়", document.text
    for document in of(documents, "library"):
        assert "রোজ আসব" not in document.text, "it is open on two days of the week"
    for document in of(documents, "feast"):
        before, _ = document.text.split("প্রত্যেকে খেলেন")
        assert "স্বাদ পেলাম" not in before, "nobody has eaten yet"
    for document in of(documents, "sapling"):
        if "যত্নের স্বাদ" in document.text:
            assert re.search("(খেয়ে|মুখে দিয়ে) বললেন, “", document.text), "a smell is no taste"
        planted = found(r"বাড়িটার (\S+)", document.text)
        assert "উঠান জুড়ে" not in document.text or planted == ("উঠানের",), document.text
    for document in of(documents, "bag returned"):
        assert not document.text.startswith("সৎ মানুষ"), "the driver is from the town"


def test_numbers_are_idiomatic(documents: list[Document]) -> None:
    for document in of(documents, "market"):
        assert "খোলা মাঠের" not in document.text or "খোলা আকাশের" in document.text, document.text
        (stalls,) = found(r"([০-৯]+)টির মতো", document.text)
        assert stalls.endswith("০"), f"nobody says about {stalls}"
    old = 0
    for document in of(documents, "fair entry"):
        (years,) = found(r"মেলাটি ([০-৯]+) বছরের", document.text)
        assert int(years.translate(DIGITS)) >= 60, "the child who was lost in it is old now"
        old += "আমিও এই মেলায়" in document.text
    assert old >= 3
    fewest = {"রসগোল্লা": 300, "সন্দেশ": 300, "পান্তুয়া": 300, "চমচম": 300, "ঘুড়ি": 50, "চরকি": 50, "হাঁড়ি": 40, "কলসি": 40}
    most = {"নকশিকাঁথা": 6, "দোতারা": 12, "সারিন্দা": 12, "ঢোল": 12, "শাড়ি": 30, "জলচৌকি": 30}
    sold: Counter[str] = Counter()
    for document in of(documents, "trade"):
        (thing,) = found(r"মাসে তিনি \S+টি (.*?) (?:বিক্রি|হাটে|খদ্দেরের)", document.text)
        count = document.scene.value("count")
        assert fewest.get(thing, 0) <= count <= most.get(thing, 5_000), document.text
        sold["checked"] += thing in fewest or thing in most
    assert sold["checked"] >= 5
    for document in of(documents, "promise kept"):
        assert not re.search("টা (নকশিকাঁথা|দোতারা|সারিন্দা|ঢোল) লাগবে", document.text), "that is the work of months"
    for document in of(documents, "workshop"):
        assert document.scene.value("made") <= 3 * document.scene.value("pupils"), document.text


def test_adults_are_referred_to_with_respect_and_speak_calmly(documents: list[Document]) -> None:
    for document in of(documents, "river"):
        assert "আসে। তারা" not in document.text, "a grandparent is among them"
    for document in of(documents, "new pupil", "sapling", "apprentice", "bird nest", "feast", "right change"):
        assert "বলে উঠলেন" not in document.text, "a counsel, a price and a plan are no outcry"


def test_clauses_follow_from_the_previous_one(documents: list[Document]) -> None:
    for document in of(documents, "muddy road"):
        assert not re.search("দুটি (আর এগোতে চাইল না|মাথা নাড়তে লাগল), কিন্তু", document.text), document.text
        assert "“হেঁইয়ো!” সবাই " in document.text, "somebody has to push"
    for document in of(documents, "right change"):
        assert not re.search(r"ফিরে গেল। \S+ [^।]* ভাবল।", document.text), "who has run back has thought already"
    for document in of(documents, "shared boat"):
        assert "ভয়ও কেটে গেল" not in document.text
        assert "মাটির দিকে" not in document.text, "there is no ground in a boat"
    for document in documents:
        sentences = [part.strip(" “”") for part in re.split(r"[।?!\n]", document.text)]
        twice = [one for one, count in Counter(sentences).items() if count > 1 and len(one.split()) > 2]
        assert not twice, f"said twice: {twice} in:\n{document.text}"


def test_gestures_do_not_repeat(documents: list[Document]) -> None:
    gestures = "মাথায় হাত রেখে|পিঠে হাত বুলিয়ে|কপালে চুমু দিয়ে|কাছে টেনে নিয়ে|চুলে বিলি কেটে|হাতটা ধরে|আদর করে"
    for document in documents:
        twice = [one for one, count in Counter(re.findall(f"{gestures}", document.text)).items() if count > 1]
        assert not twice or document.plot not in ("broken toy", "shared fruit", "apprentice", "right change"), twice


def test_a_flower_is_not_mentioned_after_its_smell(documents: list[Document]) -> None:
    for document in of(documents, "river"):
        smelt, seen = found(r"তখন \S+ \S+ ([^।]*) গন্ধ, আর গ্রামে ফোটে (\S+)", document.text)
        assert not smelt.startswith(seen), document.text
        assert "আমনের চারা" not in document.text, "seedlings bear nothing"


def test_no_list_of_food_names_a_thing_twice(documents: list[Document]) -> None:
    lists = 0
    for document in documents:
        for first, second, third in re.findall(r"(?:থাকে|মিলছে) ([^।,]*), ([^।,]*) আর ([^।,]*)।", document.text):
            for one, other in itertools.permutations((first, second, third), 2):
                assert one.split()[-1] != other.split()[-1] or one.endswith("শরবত"), document.text
            lists += 1
    assert lists >= 20


def test_unidiomatic_phrases_do_not_occur(documents: list[Document]) -> None:
    better = {
        "মেঘ একটু ধরে": "বৃষ্টি ধরে", "দাগ বোলাতেন": "দাগা বুলাতেন", "সঙ্গে না বলেন": "মানা করেন", "ভুরু তুলে": "মুখ তুলে",
        "মুহূর্তের জন্য তা শুনল": "একটু থেমে", "দূরের দিকে": "দূরের গাছগুলোর দিকে", "পেয়েছিলেন মাথায় একটা হাত": "স্নেহের হাত",
        "না হওয়ায় ঢল": "ঢল না নামায়", "ঢল না হওয়ায়": "ঢল না নামায়", "খরা এলে মাঝিরা": "ঝড় এলে", "বখশিশের টাকা": "উপহারের টাকা",
        "পোষে অনেক দিন": "যুগ যুগ", "লাঠিটি মুঠোয় পুরে": "দুহাতে ধরে", "চরকা হাতে": "টাকু হাতে", "মেশিন হাতে নিয়ে": "মেশিনটি পেয়ে",
        "মাথা নিচু করে মাথায়": "কপালে", "মনে পড়ে।”": "মনে পড়ে?”", "টি দোকান এসেছে": "বসেছে", "এসেছে ১": "বসেছে ১",
    }  # fmt: skip
    for document in documents:
        for phrase, instead in better.items():
            assert phrase not in document.text, f"{phrase}: say {instead} in:\n{document.text}"
        assert "ংে" not in document.text, "ং takes no vowel sign: রঙের"
        assert not re.search(r"গতবার \S+ কিনেছে ", document.text), "last time it bought: কিনেছিল"
        assert not re.search(r"ঘুমানোর আগে [^।]* ঘুমাতে যায়", document.text), "to sleep before sleeping"
        assert not re.search(r"দেখলেই \S+(ের|র|য়ের) \S+(ের|র|য়ের) মুখ মনে", document.text), "two genitives in a row"
