"""The people of the stories: names, relatives and forms of address. Invented combinations of everyday names, no real
person."""

from collections.abc import Iterable

from kotha.text.stories.scene import Noun, Tables, entries, listed, nouns

# Each community's names for children, for grown men and women, with the titles and family names that go with
# them.
MUSLIM_CHILDREN = """
    আয়েশা, ফাতেমা, রুবিনা, সালমা, নাসরিন, তাসলিমা, রাবেয়া, মরিয়ম, জেসমিন, নাজমা, সাবিনা, পারভীন, সুমাইয়া,
    নুসরাত, তানিয়া, রেশমা, জান্নাত, লায়লা, শিরিন, আফরোজা, ফারজানা, সাদিয়া, মাহিরা, নাদিয়া, শবনম, তাহমিনা,
    রহিম, করিম, জামাল, কামাল, রাশেদ, হাসান, সেলিম, জাহিদ, ফারুক, তারেক, আরিফ, ইমরান, সোহেল, মিজান, নাসির, শাকিল,
    রফিক, আনিস, বেলাল, ইউসুফ, ইদ্রিস, হাবিব, মনির, সাকিব, তানভীর, ফয়সাল, জুনায়েদ, মাসুদ, শফিক, রায়হান, সাইফুল,
    নাঈম, রিয়াজ, মারুফ, আবির, ফাহিম, নাফিস, রাকিব, শামীম, আসিফ, তৌহিদ, জুবায়ের, হামিদ, ওমর, আদনান, মেহেদী,
    সুহাইল, রিদওয়ান, নাবিল, সামিয়া, আনিকা, তাসনিম, লামিয়া, রাইসা, মুনিরা, নাজনীন, হুমায়রা, আসমা, শারমিন,
    ইসরাত, মৌসুমী, সেলিনা, রুখসানা, জোবেদা
"""
HINDU_CHILDREN = """
    অপর্ণা, মালতী, পার্বতী, সুমিত্রা, কাকলি, শর্মিলা, দীপালি, প্রতিমা, অঞ্জলি, রাধা, গীতা, মাধবী, কল্যাণী, অনিমা,
    রমা, উমা, পূর্ণিমা, সুপ্রিয়া, মিনতি, আরতি, জয়ন্তী, অরুণা, ভারতী, দেবযানী, গোপাল, নিমাই, সুবল, মাধব, রতন,
    তপন, স্বপন, শ্যামল, অমল, বিমল, নির্মল, দীপক, অশোক, প্রদীপ, গৌতম, মৃণাল, অরুণ, বরুণ, তরুণ, দিলীপ, সমীর, উত্তম,
    জয়দেব, অনিল, সুনীল, পরিমল, নিতাই, বলাই, কানাই, শঙ্কর, বিশ্বজিৎ, অভিজিৎ, সৌরভ, অনির্বাণ, কৌশিক, দেবাশিস,
    পার্থসারথি, সুজয়, অর্ণব, রাহুল, শুভময়, প্রসেনজিৎ, ইন্দ্রজিৎ, চন্দন, উজ্জ্বল, সুদীপ, মৌমিতা, শ্রাবণী,
    পিয়ালি, দেবিকা, সুস্মিতা, শ্রীলেখা, অদিতি, ঈশিতা, তনুশ্রী, বনানী, নন্দিনী, সোহিনী, মধুমিতা, চৈতালি, অনুরাধা
"""
COMMON_CHILDREN = """
    আকাশ, সাগর, তিতলি, টুনি, মিঠু, রানা, সুমন, সুমি, রুমা, ঝুমা, মুন্নি, পলাশ, শিমুল, বকুল, শিউলি, কাজল, রাজু,
    বাবলু, টুটুল, মিতু, খোকন, মিনু, রিনা, লিপি, ঝর্ণা, বাদল, সজল, মুকুল, চাঁপা, পারুল, জুঁই, তুলি, নয়ন, বিজয়,
    মিলন, ঊর্মি, রেণু, দোলা, টুকু, নীলা, মিলি, রূপা, শান্তা, মুক্তা, পান্না, হীরা, ঝিনুক, টগর, অন্তরা, সুরভি,
    প্রীতি, জ্যোতি, মিঠুন, রনি, জনি, বাবু, তপু, অপু, দিপু, লাবু, সবুজ, রঞ্জু, মানিক, হিরণ, কিরণ
"""
MUSLIM_MEN = """
    গফুর, জব্বার, মফিজ, কাসেম, হাশেম, রমজান, মতিন, সোবহান, লতিফ, আজগর, খালেক, মালেক, তোরাব, ইয়াকুব, নূরুল, মজিদ,
    রশিদ, সাত্তার, মকবুল, ইসমাইল, আক্কাস, বশির, দবির, ফজলু, ইউনুস, জয়নাল, লোকমান, মোতালেব, নওশের, সিরাজ, হানিফ
"""
MUSLIM_WOMEN = """
    রহিমা, হালিমা, সখিনা, আমেনা, জোহরা, মোমেনা, সুফিয়া, ফুলবানু, জমিলা, খোদেজা, মর্জিনা, আছিয়া, নূরজাহান,
    রাহেলা, হাজেরা, সাজেদা, আনোয়ারা, ছালেহা, দিলারা, জরিনা, কুলসুম, লতিফা, মাজেদা, পরীবানু, সাহেরা, রওশন
"""
HINDU_MEN = """
    হরেন, নগেন, যোগেন, নরেন, সুরেন, বীরেন, ধীরেন, মনোহর, কেদার, গণেশ, নবীন, মদন, পরান, নিধিরাম, কালীপদ, দুলাল,
    নন্দলাল, মথুর, হরিপদ, ভজহরি, অঘোর, বনমালী, চন্দ্রনাথ, দীনবন্ধু, ফটিক, গোবর্ধন, যাদব, মুকুন্দ, নীলমণি, পঞ্চানন,
    বলরাম
"""
HINDU_WOMEN = """
    সরলা, বিমলা, শোভা, চারুবালা, সুরবালা, নিভা, প্রভা, হেমলতা, মঙ্গলা, তুলসী, ননীবালা, কুসুম, বাসন্তী, অন্নপূর্ণা,
    লাবণ্যবালা, সুধা, আশালতা, বিন্দু, চঞ্চলা, দময়ন্তী, গিরিবালা, যশোদা, কাদম্বিনী, নির্মলা, রাজবালা, সাবিত্রী
"""
TITLES = {
    MUSLIM_MEN: ("চাচা, মিয়া", "হোসেন, আলী, শেখ, মোল্লা, সরকার, তালুকদার, হাওলাদার, খান, প্রামাণিক, আহমেদ, ব্যাপারী"),
    MUSLIM_WOMEN: ("খালা, চাচি", "বেগম, খাতুন, আক্তার, বিবি, সুলতানা"),
    HINDU_MEN: ("কাকা, খুড়ো", "দাস, মণ্ডল, রায়, পাল, বিশ্বাস, হালদার, বর্মণ, সাহা, ঘোষ, নস্কর"),
    HINDU_WOMEN: ("মাসি, কাকিমা", "দাস, মণ্ডল, রায়, বিশ্বাস, সরকার"),
}
# What a family says, one word for each: whoever's story it is decides for its whole text. A name that both
# communities give keeps to words that both use, and to the water of the country.
MUSLIM_WORDS = """
water: পানি
dusk: মাগরিবের আজানের একটু পরে
feast: ঈদ
mother: আম্মা
father: আব্বা
forefather: দাদা
"""
HINDU_WORDS = """
water: জল
dusk: সন্ধ্যাবাতি দেওয়ার একটু পরে
feast: পূজা
mother: মা
father: বাবা
forefather: ঠাকুরদা
"""
COMMON_WORDS = """
water: পানি
dusk: সন্ধ্যার একটু পরে
feast: নববর্ষ
mother: মা
father: বাবা
forefather: দাদু
"""
# Relatives as each community calls them.
KIN = {
    MUSLIM_CHILDREN: f"""{MUSLIM_WORDS}
kin: আম্মা, আব্বা, দাদি, নানি, দাদা, নানা, চাচা, ফুফু, খালা, মামা, মামি, চাচি
parent: আম্মা, আব্বা
grand: দাদি, নানি, দাদা, নানা
aunt: খালা, ফুফু, চাচি, মামি
""",
    HINDU_CHILDREN: f"""{HINDU_WORDS}
kin: মা, বাবা, ঠাকুমা, দিদিমা, ঠাকুরদা, দাদু, কাকা, কাকিমা, পিসি, মাসি, মামা, মামি, জেঠু
parent: মা, বাবা
grand: ঠাকুমা, দিদিমা, ঠাকুরদা, দাদু
aunt: মাসি, পিসি, কাকিমা, মামি
""",
    COMMON_CHILDREN: f"""{COMMON_WORDS}
kin: মা, বাবা, দাদু, নানু, মামা, মামি
parent: মা, বাবা
grand: দাদু, নানু
aunt: মামি, বড় আপা
""",
}
OF_COMMUNITY = {
    MUSLIM_MEN: MUSLIM_WORDS,
    MUSLIM_WOMEN: MUSLIM_WORDS,
    HINDU_MEN: HINDU_WORDS,
    HINDU_WOMEN: HINDU_WORDS,
}
MEN = (MUSLIM_MEN, HINDU_MEN)


def _said(words: str) -> dict[str, tuple[Noun, ...]]:
    """A family's words by part; all but the first three name people."""
    ranks = {"water": None, "dusk": None, "feast": None}
    return {part: nouns(line, ranks.get(part, "তিনি")) for part, line in entries(words).items()}


def _grown(communities: Iterable[str], after: int | None = None) -> tuple[Noun, ...]:
    """Grown people by name, alone or with what follows it: a title (0) or a family name (1)."""
    return tuple(
        Noun(f"{name} {addition}".strip(), "তিনি", words, key=name)
        for names in communities
        for words in [_said(OF_COMMUNITY[names])]
        for name in listed(names)
        for addition in ([""] if after is None else listed(TITLES[names][after]))
    )


def _children(community: str) -> tuple[Noun, ...]:
    parts = {**_said(KIN[community]), "sibling": nouns("ছোট ভাই, ছোট বোন", "সে")}
    return tuple(Noun(name, "সে", parts) for name in listed(community))


PEOPLE: Tables = {
    "child": tuple(child for community in KIN for child in _children(community)),
    "neighbour": _grown(TITLES, 0),
    "citizen": _grown(TITLES, 1),
    "grown": _grown(TITLES),
    # Those who row, cast nets, steer and drive.
    "man": _grown(MEN),
    "townsman": _grown(MEN, 1),
    "peer": (Noun("তুই", "তুই"), Noun("তুমি", "তুমি")),
}
