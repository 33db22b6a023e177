"""Stories that begin anywhere: what the model in the box reads last, so that most beginnings lead into plain prose.

The stories hold together and begin in a few dozen ways; a prompt is none of them, and leads into Tagore's dialogue or
an encyclopaedia's lead, which so small a model cannot keep up. So stories are told again from some sentence in their
first half, most of them behind an opening from the others: a phrase of place or time with which a sentence begins
(“ঘরের মধ্যে”), a short sentence or clause, a short speech, somebody who speaks in Tagore or something that an article is
about with a few words that lead from there to a story (“রাজা একটা গল্প বলছিলেন।”); or behind a narrator's words (“আমি
শুনেছি,”). Some of the first text is read again beside them: what is not read is forgotten. The stories are new ones: the
grammar has more, and a model that reads few of them anew forgets who is who.
"""

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Sequence

import regex

from kotha.text.stories import people

SEED = 13
OPENED_SHARE = 0.8  # of the stories about a child: behind an opening
OTHERS_SHARE = 0.2  # of the characters: passages of the other sources as they were
BEGUN_WITHIN = 0.4  # of a story's sentences: later on, too much is spoken of that was told before
LEAST_SEEN = 2  # times that a phrase begins a sentence, or that somebody speaks
LONGEST_PHRASE = 3
SHORT = range(2, 7)  # words of a sentence, a clause or a speech
# How often each kind of opening comes.
SHARES = {"place": 0.2, "narrator": 0.15, "speaker": 0.15, "topic": 0.2, "sentence": 0.1, "clause": 0.1, "speech": 0.1}

_SENTENCE_END = regex.compile(r"(?<=[।?!])\s+|\n")
# What a phrase of place or time ends with, and what may stand before: somebody's or something's, or one of a few words.
_LAST = regex.compile(
    "ধারে|মধ্যে|মাঝখানে|পথে|ভিতরে|ভেতরে|উপরে|ওপরে|নিচে|নীচে|কাছে|পাশে|বাইরে|বাহিরে|সামনে|পিছনে|ওপারে|এপারে|তীরে|তলায়|"
    "ঘরে|বাড়িতে|গ্রামে|শহরে|দেশে|জলে|আকাশে|বনে|বাগানে|মাঠে|স্কুলে|বাজারে|সময়|সময়ে|দিনে|রাতে|রাত্রে|সকালে|ভোরে|"
    "দুপুরে|বিকালে|বিকেলে|সন্ধ্যায়|সন্ধ্যাবেলায়|সকালবেলায়|কালে|বর্ষাকালে|শীতকালে|মাসে|বছরে|সালে|পরে|আগে|একদিন|সেদিন|"
    "পরদিন|তখন|এখন|আজ|হঠাৎ|অবশেষে"
)
_BEFORE_LAST = regex.compile(r"[\p{L}\p{M}]+র|[০-৯]+|এক|একদিন|সেই|এই|সে|কোনো|অনেক|প্রতি|কিছু|আজ|তখন|গভীর|ঐ|সেদিন|বড়ো?")
# Before what somebody says, in Tagore's two kinds of prose; and what an article's first words are followed by.
_SAYS = "কহিলেন|কহিল|বলিলেন|বলিল|বললেন|বললে|বলল|বলেন"
_SAID = regex.compile(rf"([\p{{L}}\p{{M}}]+(?<!িয়া|ে|বার)) (?:{_SAYS}),")
_ABOUT = regex.compile(r"((?:[\p{L}\p{M}-]+ ){0,2}[\p{L}\p{M}-]+),? (?:হল|হলো|হচ্ছে|ছিলেন|ছিল|একটি|একজন|এক|বা|নামক)\b")
_FINISHED = regex.compile(rf"(?<!{_SAYS})(?<=ল|লেন|লাম|ছে|ছেন|ছি|য়|যায়|নাই|নেই|না|যে),$")
_SPEECH = regex.compile(r"“([^“”\na-zA-Z]{4,60}[।?!])”")
# What leads from somebody, or from something, to a story.
SPEAKERS = """
    # একটা গল্প বলছিলেন। | # বললেন, “শোনো, একটা গল্প বলি।” | # সেদিন একটা গল্প শোনালেন। | # গল্পটা আগেও শুনেছেন।
    # জানতেন না, পাশের গ্রামে কী হয়েছে। | # দূর থেকে সবই দেখছিলেন। | # গল্প শুনতে ভালোবাসতেন। | # চুপ করে বসে ছিলেন।
    # পরে সবাইকে কথাটা বলেছিলেন। | # এ গল্পে নেই, তবে গল্পটা তাঁরই বলা।
"""
TOPICS = """
    # নিয়ে ক্লাসে কথা হচ্ছিল। | # কাকে বলে, শিক্ষক তা বুঝিয়ে দিলেন। | # হল সেদিনের পড়া। | # হলো সেদিনের পড়ার বিষয়।
    # কী, ছোটরা তা জানত না। | # সম্পর্কে একটা বই পড়া হচ্ছিল। | # কথাটা শুনে সবাই চুপ করে রইল। | # নিয়ে একটা গল্প আছে।
    # একটি বড় বিষয়, কিন্তু এই গল্পটি ছোট। | # হচ্ছে এমন একটি বিষয়, যা নিয়ে সবাই কথা বলে। | # একটি পুরোনো কথা।
    # এখন সবাই চেনে, আগে চিনত না। | # নামটি সবাই জানে। | # ছিল সেদিনের গল্পের বিষয়। | # এবং আরও অনেক কিছু নিয়ে কথা হলো।
"""
# A narrator may speak of himself, or to somebody, before the story goes on.
FRAMES = """
    আমি জানি, | আমি শুনেছি, | আমি দেখলাম, | আমি একদিন দেখলাম, | আমি তখন ছোট। | আমি এক গল্প বলি। | আমি ভাবছিলাম,
    আমরা জানি, | আমরা দেখলাম, | আমরা সবাই দেখলাম, | আমাদের গ্রামে | আমার মনে আছে, | তুমি জানো, | তুমি কি জানো,
    তুমি কি শুনেছ, | শোনো, | সবাই জানে, | লোকে বলে, | শোনা যায়, | কে না জানে, | সে কথা এখনো মনে আছে। | এ এক গল্প।
    সুখের কথা, | কথাটা এই যে, | গল্পটা এই। | কেউ জানত না, | কেন জানি না, | সে এক দিনের কথা। | মনে পড়ে,
"""
_NAMES = frozenset(
    itertools.chain.from_iterable(
        map(str.strip, names.split(","))
        for names in (people.MUSLIM_CHILDREN, people.HINDU_CHILDREN, people.COMMON_CHILDREN)
    )
)


def sentences(text: str) -> list[str]:
    """The sentences of a text; what is said in quotation marks stays with who says it and with what follows.

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
    """Phrases of place or time with which sentences of these texts begin, more than once.

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


def speakers(texts: Iterable[str]) -> list[str]:
    """Who says something more than once.

    >>> speakers(["রাজা কহিলেন, “বটে।”\\nরাজা কহিলেন, “না।”\\nমন্ত্রী কহিল, “হাঁ।”"])
    ['রাজা']
    """
    counted = Counter(
        found[1] for text in texts for sentence in sentences(text) if (found := _SAID.match(sentence.strip()))
    )
    return [who for who, times in counted.items() if times >= LEAST_SEEN]


def topics(leads: Iterable[str]) -> list[str]:
    """What articles are about, by their first words.

    >>> topics(["নদী হল স্রোত।", "১৯৭১ সালের যুদ্ধ।", "আম এক ফল।"])
    ['নদী', 'আম']
    """
    return [found[1] for lead in leads if (found := _ABOUT.match(lead))]


def short_sentences(texts: Iterable[str]) -> list[str]:
    """Short sentences in which nobody speaks.

    >>> short_sentences(["সে এল। সে কহিল, “এসো।” তাহার পর অনেক দিন আর কেহ তাহাকে সেখানে দেখে নাই।"])
    ['সে এল।']
    """
    found = (sentence.strip() for text in texts for sentence in sentences(text))
    return [each for each in found if len(each.split()) in SHORT and each[-1] in "।?!" and not set("“”‘’—") & set(each)]


def clauses(texts: Iterable[str]) -> list[str]:
    """The clauses with which sentences begin, where these are short and finished.

    >>> clauses(["সন্ধ্যা হইয়া আসিল, কেহ নাই। তাহার মা, সে, আর আমি।"])
    ['সন্ধ্যা হইয়া আসিল,']
    """
    found = (
        sentence.partition(",")[0].strip() + "," for text in texts for sentence in sentences(text) if "," in sentence
    )
    return [each for each in found if len(each.split()) in SHORT and _FINISHED.search(each) and "“" not in each]


def speeches(texts: Iterable[str]) -> list[str]:
    """Short speeches.

    >>> speeches(["সে কহিল, “কোথায়?” রাজা কহিলেন, “এই তো।”"])
    ['কোথায়?', 'এই তো।']
    """
    return [found[1] for text in texts for found in _SPEECH.finditer(text) if len(found[1].split()) < SHORT.stop]


class Openings:
    """Openings of every kind, from works of fiction and from articles."""

    def __init__(self, works: Sequence[str], leads: Sequence[str], chance: random.Random) -> None:
        self._chance = chance
        self._kinds = {
            "place": phrases([*works, *leads]),
            "narrator": _listed(FRAMES),
            "speaker": speakers(works),
            "topic": topics(leads),
            "sentence": short_sentences(works),
            "clause": clauses(works),
            "speech": speeches(works),
        }

    def draw(self, child: str) -> str:
        """One before a sentence that begins with a child's name."""
        (kind,) = self._chance.choices(list(SHARES), list(SHARES.values()))
        words = self._chance.choice(self._kinds[kind])
        if kind == "speech":
            return f"“{words}” বলল {child}।"
        if kind in ("speaker", "topic"):
            return self._chance.choice(_listed(SPEAKERS if kind == "speaker" else TOPICS)).replace("#", words)
        return words


def _listed(lines: str) -> list[str]:
    return [each.strip() for line in lines.strip().splitlines() for each in line.split("|")]


def begun_elsewhere(story: str, openings: Openings, chance: random.Random) -> str:
    """The story from some sentence on, maybe one about a child and behind an opening; without a child, the whole."""
    every = sentences(story)
    starts = range(max(1, round(BEGUN_WITHIN * len(every))))
    about_a_child = [start for start in starts if every[start].split(" ", 1)[0] in _NAMES]
    if not about_a_child:
        return story
    if chance.random() < OPENED_SHARE:
        start = chance.choice(about_a_child)
        return f"{openings.draw(every[start].split(' ', 1)[0])} {''.join(every[start:])}"
    return "".join(every[chance.choice(starts) :])


def last_reading(stories: Sequence[str], works: Sequence[str], leads: Sequence[str]) -> list[str]:
    """Stories begun elsewhere, and passages of works and articles as they were: what is read last."""
    chance = random.Random(SEED)
    openings = Openings(works, leads, chance)
    told = [begun_elsewhere(story, openings, chance) for story in stories]
    wanted = OTHERS_SHARE / (1 - OTHERS_SHARE) * sum(map(len, told))
    others = [*works, *leads]
    chance.shuffle(others)
    sizes = itertools.accumulate(map(len, others))
    return told + [text for text, size in zip(others, sizes, strict=True) if size <= wanted]
