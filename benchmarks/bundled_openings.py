"""Stories with arbitrary beginnings: the final training data, so that the bundled model can continue most prompts.

The built-in stories are coherent, but begin in only a few dozen ways. Most prompts begin differently, and the model
continues them with Tagore's dialogue or the lead of an encyclopaedia article, which a model of this size cannot write
coherently. It is therefore also trained on stories that follow an opening taken from the other sources. An opening is a
phrase of place or time (“ঘরের মধ্যে”), a short sentence, clause or line of dialogue, the first words of a sentence
(“সেই কথা শুনিয়া”), a character who speaks in Tagore's works, the topic of an article (“নদী নিয়ে কথা হচ্ছিল। দাদু তখন
একটা গল্প বললেন।”), or an incomplete lead (“ভারতের একটি”). Other openings are a narrator's words (“আমি শুনেছি,”) or a
possession of the child in the story. A few words connect the opening with the story. A small part of the earlier
training text is included, so that the model does not forget it. The stories are new ones from the same grammar, because
a model that sees only a few stories repeatedly confuses their characters.
"""

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Sequence

import regex

from kotha.text.stories.lexicon import communities

SEED = 13
OPENED_SHARE = 0.85  # share of the stories that follow an opening
WHOLE_SHARE = 0.6  # if the child acts early: share of these stories that are still used in full
SOON = 4  # sentences
ELSEWHERE_SHARE = 0.1  # share of the stories without an opening that start at a later sentence
BEGUN_WITHIN = 0.4  # share of a story's sentences; later ones refer too much to what precedes them
OTHERS_SHARE = 0.08  # share of the characters that are unchanged passages from the other sources
LEAST_SEEN = 2  # minimum number of times that a phrase begins a sentence, or that a character speaks
LONGEST_PHRASE = 3
SHORT = range(2, 7)  # number of words in a sentence, a clause or a line of dialogue
# The share of each kind of opening: before a complete story, and before a sentence in which its child acts.
LEADING = {"narrator": 0.16, "speaker": 0.16, "person": 0.18, "topic": 0.22, "lead": 0.1, "sentence": 0.18}
ACTING = {"place": 0.42, "clause": 0.1, "doing": 0.12, "speech": 0.18, "own": 0.18}

_SENTENCE_END = regex.compile(r"(?<=[।?!])\s+|\n")
# The last word of a phrase of place or time, and the word that may precede it: a genitive, or one of a few words.
_LAST = regex.compile(
    "ধারে|মধ্যে|মাঝখানে|পথে|ভিতরে|ভেতরে|উপরে|ওপরে|নিচে|নীচে|কাছে|পাশে|বাইরে|বাহিরে|সামনে|পিছনে|ওপারে|এপারে|তীরে|তলায়|"
    "ঘরে|বাড়িতে|গ্রামে|শহরে|দেশে|জলে|আকাশে|বনে|বাগানে|মাঠে|স্কুলে|বাজারে|সময়|সময়ে|দিনে|রাতে|রাত্রে|সকালে|ভোরে|"
    "দুপুরে|বিকালে|বিকেলে|সন্ধ্যায়|সন্ধ্যাবেলায়|সকালবেলায়|কালে|বর্ষাকালে|শীতকালে|মাসে|বছরে|সালে|পরে|আগে|একদিন|সেদিন|"
    "পরদিন|তখন|এখন|আজ|হঠাৎ|অবশেষে"
)
_BEFORE_LAST = regex.compile(r"[\p{L}\p{M}]+র|[০-৯]+|এক|একদিন|সেই|এই|সে|কোনো|অনেক|প্রতি|কিছু|আজ|তখন|গভীর|ঐ|সেদিন|বড়ো?")
# Pronouns in the works of fiction that need other forms of the verbs below.
_PRONOUNS = frozenset(["আমি", "তুমি", "আপনি", "আমরা", "তোমরা", "তুই", "কে", "কেহ", "কেউ"])
# The verbs that introduce direct speech in Tagore's two styles of prose, and the words that follow an article's topic.
_SAYS = "কহিলেন|কহিল|বলিলেন|বলিল|বললেন|বললে|বলল|বলেন"
_SAID = regex.compile(rf"([\p{{L}}\p{{M}}]+(?<!িয়া|ে|বার)) ({_SAYS}),")
_ABOUT = regex.compile(
    r"((?:[\p{L}\p{M}-]+ ){0,2}?[\p{L}\p{M}-]+),? (?:হল|হলো|হচ্ছে|হলেন|ছিলেন|ছিল|একটি|একজন|এক|বা|নামক)\b"
)
# A lead that ends before a noun, or after the name of a thing.
_LEAD = regex.compile(
    r"((?:[\p{L}\p{M}-]+ ){0,2}[\p{L}\p{M}-]+(?<!মাত্)র (?:একটি|একজন)|একটি|তিনি একজন|"
    r"(?:(?:এই|সেই|এ) )?(?!একটি|দুটি|দুইটি|কোনটি|যেমনটি|তেমনটি|প্রতিটি|এটি|সেটি)[\p{L}\p{M}-]{3,}টি) "
)
# A participle clause whose subject follows.
_DOING = regex.compile(
    "(?:সেই|এই|তাই|তখন|ইহা|তাহা|তা|কথাটা|বাড়ি|ঘর|ঘরে|বাহিরে|বাইরে|এমন|আজ|একদিন|কিছুক্ষণ|অনেক|খবর|চিঠি|চিঠিখানা|দরজা|দ্বার|"
    r"জানলা|মুখ|চোখ|হাত|মাথা) (?:[\p{L}\p{M}]+ ){0,2}[\p{L}\p{M}]+(?:িয়া|ইয়া|িয়ে|য়ে)(?= )"
)
_FINISHED = regex.compile(rf"(?<!{_SAYS})(?<=ল|লেন|লাম|ছে|ছেন|ছি|য়|যায়|নাই|নেই|না|যে),$")
_SPEECH = regex.compile(r"“([^“”\na-zA-Z]{4,60}[।?!])”")
# Sentences that lead to a story, where # stands for the words found and @ for the child's name: from a person in the
# honorific form, from any other person, and from a topic.
HONOURED = """
    # একটা গল্প বলছিলেন। | # বললেন, “শোনো, একটা গল্প বলি।” | # সেদিন একটা গল্প শোনালেন। | # গল্প বলতে ভালোবাসতেন।
    # গল্প শুনতে ভালোবাসতেন। একদিন তাঁকে এই গল্পটা শোনানো হলো। | # চুপ করে বসে এই গল্পটা শুনছিলেন।
    # গল্পের বই পড়ছিলেন। গল্পটা এই। | # অনেক গল্প জানতেন। তার একটি এই। | # হেসে বললেন, “তবে শোনো।”
    # একদিন এই ঘটনার কথা বলেছিলেন। | # বারান্দায় বসে ছোটদের গল্প শোনাচ্ছিলেন।
"""
ANYBODY = """
    # একটা গল্প বলছিল। | # বলল, “শোনো, একটা গল্প বলি।” | # গল্প শুনতে ভালোবাসত। সেদিন তাকে এই গল্পটা শোনানো হলো।
    # চুপ করে বসে একটা গল্প শুনছিল। | # একটা গল্পের বই পড়ছিল। গল্পটা এই। | # দাদুর কাছে একটা গল্প শুনেছিল।
    # মায়ের কাছে এসে বলল, “একটা গল্প বলো।” মা বলতে শুরু করলেন। | # সেদিন এই ঘটনার কথা শুনেছিল। | # হেসে বলল, “তবে শোনো।”
"""
TOPICS = """
    # নিয়ে ক্লাসে কথা হচ্ছিল। শিক্ষক তখন একটা গল্প বললেন। | # নিয়ে একটা গল্প আছে। গল্পটা এই।
    # হল সেদিনের পড়া। পড়া শেষে সবাই একটা গল্প শুনল। | # হলো সেদিনের পড়ার বিষয়। পড়া শেষ হলে একটা গল্প শোনা গেল।
    # সম্পর্কে একটা বই পড়া হচ্ছিল। সেই বইয়ে এই গল্পটা ছিল। | # নিয়ে কথা হচ্ছিল। দাদু তখন একটা গল্প বললেন।
    # ছিল সেদিনের আলোচনার বিষয়। তারপর শুরু হলো গল্প। | # নামটি সবাই জানে। এই গল্পটা কম লোকই জানে।
    # এবং আরও অনেক কিছু নিয়ে কথা হলো। শেষে এই গল্পটা উঠল। | # নিয়ে লেখা একটা বইয়ে এই গল্পটা আছে।
"""
# Sentences that lead from any other sentence to a story.
MEANWHILES = """
    এমন সময় দাদু একটা গল্প শুরু করলেন। | তখন মা একটা গল্প বললেন। | সবাই গোল হয়ে বসে একটা গল্প শুনছিল। | তারপর গল্প শুরু হলো।
    এমন দিনে একটা গল্প মনে পড়ে। | গল্পটা এই। | এই নিয়ে একটা গল্প আছে। | ঠাকুমা বললেন, “একটা গল্প শোনো।” | শোনো তবে।
"""
# Possible continuations of a lead, by its ending.
BROKEN_LEADS = {
    "একটি": """# ছোট গ্রামের গল্প এটি। | # গ্রামে এই ঘটনা ঘটেছিল। | # গ্রামের কথা বলি। | # পুরোনো বইয়ে এই গল্পটা আছে।""",
    "একজন": """# গল্পকার ছিলেন। তাঁর একটি গল্প এই। | # শিক্ষক এই গল্পটা বলতেন। | # মানুষের মুখে এই গল্পটা শোনা।""",
    "টি": """# নিয়ে একটা গল্প আছে। | # একটা গল্প নিয়ে। গল্পটা এই। | # নিয়ে কথা হচ্ছিল। দাদু তখন একটা গল্প বললেন।""",
}
# Persons with whom a sentence may begin, in the honorific form and otherwise, and things that a child may own.
HONOURED_PERSONS = """
    মা | বাবা | দাদু | দাদা | দাদি | দিদিমা | ঠাকুমা | নানি | শিক্ষক | একজন শিক্ষক | একজন বৃদ্ধ | এক বৃদ্ধ | কবি | রাজা
    রানি | ডাক্তার | একজন কবি | আমার মা | আমার দাদু | তিনি | মাস্টারমশাই | লেখক | এক রাজা | একজন ভদ্রলোক | গ্রামের মোড়ল
"""
OTHER_PERSONS = """
    সে | মেয়েটি | ছেলেটি | ছোট মেয়েটি | ছোট ছেলেটি | একটি মেয়ে | একটি ছেলে | এক জেলে | চাষি | লোকটি
    একটা লোক | আমার ভাই | আমার বোন | বন্ধুটি | একজন বন্ধু | রাখাল | মাঝি | খোকা | খুকি | বুড়ি | এক চাষি | তারা | সবাই | বন্ধুরা
"""
POSSESSIONS = """
    গরু | ছাগল | বিড়াল | কুকুর | হাঁস | পাখি | খরগোশ | সাইকেল | বই | লাল জামা | ঘুড়ি | নৌকা | পুতুল | ছাতা | বাগান | আমগাছ
"""
OWN = """
    @র একটি # ছিল। | @র একটি ছোট # ছিল। | এক গ্রামে থাকত @। | @ নামে একজন ছিল। | @র কথা বলি। | @ সেদিন খুব খুশি।
    কেন যে @ সেদিন এত খুশি, কেউ জানত না। | যদি @র কথা শোনো, ভালো লাগবে। | এ গল্প @র।
"""
# Continuations after direct speech, and actions of a child after a participle clause.
SPOKEN = """
    “#” বলল @। | “#” মা জিজ্ঞেস করলেন। @ হাসল। | “#” কথাটা শুনে @ ফিরে তাকাল। | “#” @ মনে মনে বলল।
"""
DONE = """
    হেসে উঠল। | চুপ করে রইল। | উঠে দাঁড়াল। | মাথা নাড়ল। | বাড়ি ফিরে এল। | খুশি হলো। | অবাক হয়ে তাকাল। | একটু ভাবল।
"""
# Words of a narrator before the story continues.
FRAMES = """
    আমি জানি, | আমি শুনেছি, | আমি দেখলাম, | আমি একদিন দেখলাম, | আমি তখন ছোট। | আমি এক গল্প বলি। | আমি ভাবছিলাম,
    আমরা জানি, | আমরা দেখলাম, | আমরা সবাই দেখলাম, | আমাদের গ্রামে | আমার মনে আছে, | তুমি জানো, | তুমি কি জানো,
    তুমি কি শুনেছ, | শোনো, | সবাই জানে, | লোকে বলে, | শোনা যায়, | কে না জানে, | সে কথা এখনো মনে আছে। | এ এক গল্প।
    সুখের কথা, | কথাটা এই যে, | গল্পটা এই। | সে এক দিনের কথা। | মনে পড়ে, | যদি শোনো, একটা গল্প বলি। | এক যে ছিল গ্রাম।
    যদি সময় থাকে, তবে শোনো। | কেন যে মনে পড়ল, জানি না। গল্পটা এই। | আজ একটা গল্প বলি। | গল্পটা অনেক দিন আগের।
"""
_NAMES = frozenset(
    itertools.chain.from_iterable(map(str.strip, community["child"].split(",")) for community in communities().values())
)


def sentences(text: str) -> list[str]:
    """Split a text into sentences; quoted speech stays with its speaker and the words that follow it.

    >>> sentences("সে এল। মা বললেন, “এসো। বসো।” সে বসল। রাত হলো।")
    ['সে এল। ', 'মা বললেন, “এসো। বসো।” সে বসল। ', 'রাত হলো।']
    """
    found, start = [], 0
    for end in _SENTENCE_END.finditer(text):
        if text.count("“", start, end.start()) == text.count("”", start, end.start()):
            found.append(text[start : end.end()])
            start = end.end()
    return [*found, text[start:]]


def phrases(texts: Iterable[str]) -> list[str]:
    """Return phrases of place or time that begin more than one sentence in these texts.

    >>> phrases(["নদীর ধারে মেলা। নদীর ধারে গ্রাম।"])
    ['নদীর ধারে']
    """
    counted = Counter(
        " ".join(words[:length])
        for text in texts
        for sentence in sentences(text)
        for words in [sentence.split()]
        for length in range(1, LONGEST_PHRASE + 1)
        if len(words) > length and _is_phrase(words[:length])
    )
    return [phrase for phrase, times in counted.items() if times >= LEAST_SEEN]


def _is_phrase(words: Sequence[str]) -> bool:
    return _LAST.fullmatch(words[-1]) is not None and all(map(_BEFORE_LAST.fullmatch, words[:-1]))


def speakers(texts: Iterable[str]) -> dict[str, bool]:
    """Return the characters who speak more than once, and whether the verbs are in the honorific form.

    >>> speakers(["রাজা কহিলেন, “বটে।”\\nরাজা কহিলেন, “না।”\\nমন্ত্রী কহিল, “হাঁ।”"])
    {'রাজা': True}
    """
    counted = Counter(
        found.groups() for text in texts for sentence in sentences(text) if (found := _SAID.match(sentence.strip()))
    )
    named = ((who, says) for (who, says), times in counted.items() if times >= LEAST_SEEN and who not in _PRONOUNS)
    return {who: says.endswith("েন") for who, says in named}


def topics(leads: Iterable[str]) -> list[str]:
    """Return the topics of articles, taken from their first words.

    >>> topics(["নদী হল স্রোত।", "১৯৭১ সালের যুদ্ধ।", "আম এক ফল।"])
    ['নদী', 'আম']
    """
    return [found[1] for lead in leads if (found := _ABOUT.match(lead))]


def broken_leads(leads: Iterable[str]) -> list[str]:
    """Return the first words of articles, up to a word that requires a noun or names the thing.

    >>> broken_leads(["ঢাকা বাংলাদেশের একটি শহর।", "এই গ্রন্থটি পুরোনো।", "নদী হল স্রোত।"])
    ['ঢাকা বাংলাদেশের একটি', 'এই গ্রন্থটি']
    """
    return [found[1] for lead in leads for sentence in sentences(lead) if (found := _LEAD.match(sentence))]


def doings(texts: Iterable[str]) -> list[str]:
    """Return the participle clauses that begin sentences.

    >>> doings(["সেই কথা শুনিয়া রাজা কহিলেন, “বটে।” সে এল।"])
    ['সেই কথা শুনিয়া']
    """
    return [found[0] for text in texts for sentence in sentences(text) if (found := _DOING.match(sentence))]


def short_sentences(texts: Iterable[str]) -> list[str]:
    """Return short sentences without direct speech.

    >>> short_sentences(["সে এল। সে কহিল, “এসো।” তাহার পর অনেক দিন আর কেহ তাহাকে সেখানে দেখে নাই।"])
    ['সে এল।']
    """
    found = (sentence.strip() for text in texts for sentence in sentences(text))
    return [each for each in found if len(each.split()) in SHORT and each[-1] in "।?!" and not set("“”‘’—") & set(each)]


def clauses(texts: Iterable[str]) -> list[str]:
    """Return short, complete clauses that begin sentences.

    >>> clauses(["সন্ধ্যা হইয়া আসিল, কেহ নাই। তাহার মা, সে, আর আমি।"])
    ['সন্ধ্যা হইয়া আসিল,']
    """
    found = (
        sentence.partition(",")[0].strip() + "," for text in texts for sentence in sentences(text) if "," in sentence
    )
    return [each for each in found if len(each.split()) in SHORT and _FINISHED.search(each) and "“" not in each]


def speeches(texts: Iterable[str]) -> list[str]:
    """Return short lines of dialogue.

    >>> speeches(["সে কহিল, “কোথায়?” রাজা কহিলেন, “এই তো।”"])
    ['কোথায়?', 'এই তো।']
    """
    return [found[1] for text in texts for found in _SPEECH.finditer(text) if len(found[1].split()) < SHORT.stop]


class Openings:
    """Openings of all kinds, from works of fiction and from articles."""

    def __init__(self, works: Sequence[str], leads: Sequence[str], chance: random.Random) -> None:
        self._chance = chance
        self._speakers = speakers(works)
        self._persons = dict.fromkeys(_listed(HONOURED_PERSONS), True)
        self._persons |= dict.fromkeys(_listed(OTHER_PERSONS), False)
        self._kinds = {
            "place": phrases([*works, *leads]),
            "narrator": _listed(FRAMES),
            "speaker": list(self._speakers),
            "person": list(self._persons),
            "topic": topics(leads),
            "lead": broken_leads(leads),
            "sentence": short_sentences(works),
            "clause": clauses(works),
            "doing": doings(works),
            "speech": speeches(works),
            "own": _listed(OWN),
        }

    def before_a_story(self) -> str:
        """Return an opening that leads to any complete story."""
        kind, words = self._drawn(LEADING)
        match kind:
            case "speaker":
                ways = HONOURED if self._speakers[words] else ANYBODY
            case "person":
                ways = HONOURED if self._persons[words] else ANYBODY
            case "topic":
                ways = TOPICS
            case "lead":
                ways = next(ways for end, ways in BROKEN_LEADS.items() if words.endswith(end))
            case "sentence":
                return f"{words} {self._one_of(MEANWHILES)}"
            case _:
                return words
        return self._one_of(ways).replace("#", words)

    def before_a_child(self, child: str) -> str:
        """Return an opening for a sentence that begins with the name of a child."""
        kind, words = self._drawn(ACTING)
        match kind:
            case "speech":
                return self._one_of(SPOKEN).replace("#", words).replace("@", child)
            case "doing":
                return f"{words} {child} {self._one_of(DONE)}"
            case "own":
                had = self._one_of(POSSESSIONS)
                return with_name(words, child).replace("#", had)
            case _:
                return words

    def _drawn(self, shares: dict[str, float]) -> tuple[str, str]:
        shares = {kind: share for kind, share in shares.items() if self._kinds[kind]}  # absent in small texts
        (kind,) = self._chance.choices(list(shares), list(shares.values()))
        return kind, self._chance.choice(self._kinds[kind])

    def _one_of(self, lines: str) -> str:
        return self._chance.choice(_listed(lines))


def with_name(words: str, child: str) -> str:
    """Insert a child's name into the words, in the genitive where required.

    >>> with_name("@র একটি গরু ছিল।", "রহিম"), with_name("@র কথা বলি।", "মিতা")
    ('রহিমের একটি গরু ছিল।', 'মিতার কথা বলি।')
    """
    ends_in_a_vowel = regex.search(r"[\p{M}অআইঈউঊএঐওঔ]$", child) is not None
    return words.replace("@র", f"{child}{'র' if ends_in_a_vowel else 'ের'}").replace("@", child)


def _listed(lines: str) -> list[str]:
    return [each.strip() for line in lines.strip().splitlines() for each in line.split("|")]


def begun_elsewhere(story: str, openings: Openings, chance: random.Random) -> str:
    """Return a story after an opening, complete or from the child's action on; a few are unchanged or start later."""
    every = sentences(story)
    if chance.random() >= OPENED_SHARE:
        later = range(max(1, round(BEGUN_WITHIN * len(every))))
        start = chance.choice(later) if chance.random() < ELSEWHERE_SHARE else 0
        return "".join(every[start:])
    acting = next((start for start, sentence in enumerate(every[:SOON]) if _acts(sentence)), None)
    if acting is None or chance.random() < WHOLE_SHARE:
        return f"{openings.before_a_story()} {story}"
    child = every[acting].split(" ", 1)[0]
    return f"{openings.before_a_child(child)} {''.join(every[acting:])}"


def _acts(sentence: str) -> bool:
    """Return whether a child acts but does not speak in a sentence; speech would refer to preceding sentences."""
    return sentence.split(" ", 1)[0] in _NAMES and not regex.search("“|বলল|চাইল", sentence)


def last_reading(
    stories: Sequence[str], reports: Sequence[str], works: Sequence[str], leads: Sequence[str]
) -> list[str]:
    """Return the final training data: stories with new openings, reports, and unchanged passages and articles."""
    chance = random.Random(SEED)
    openings = Openings(works, leads, chance)
    told = [*(begun_elsewhere(story, openings, chance) for story in stories), *reports]
    wanted = OTHERS_SHARE / (1 - OTHERS_SHARE) * sum(map(len, told))
    others = [*works, *leads]
    chance.shuffle(others)
    sizes = itertools.accumulate(map(len, others))
    return told + [text for text, size in zip(others, sizes, strict=True) if size <= wanted]
