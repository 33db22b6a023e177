"""Stories that begin anywhere: what the model in the box reads last, so that most beginnings lead into plain prose.

The stories hold together and begin in a few dozen ways; a prompt is none of them, and leads into Tagore's dialogue or
an encyclopaedia's lead, which so small a model cannot keep up. So stories are told again from some sentence in their
first half, most of them behind a phrase of place or time with which the others begin sentences (“ঘরের মধ্যে”), or behind
a narrator's words (“আমি শুনেছি,”). Some of the first text is read again beside them: what is not read is forgotten. The
stories are new ones: the grammar has more, and a model that reads few of them anew forgets who is who.
"""

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Sequence

import regex

from kotha.text.stories import people

SEED = 13
OPENED_SHARE = 0.7  # of the stories about a child: behind an opening
OTHERS_SHARE = 0.25  # of the characters: passages of the other sources as they were
BEGUN_WITHIN = 0.4  # of a story's sentences: later on, too much is spoken of that was told before
FRAMES_TO_PHRASES = 1.0
LEAST_SEEN = 2  # times that a phrase begins a sentence
LONGEST_PHRASE = 3

_SENTENCE_END = regex.compile(r"(?<=[।?!])\s+|\n")
# What a phrase of place or time ends with, and what may stand before: somebody's or something's, or one of a few words.
_LAST = regex.compile(
    "ধারে|মধ্যে|মাঝখানে|পথে|ভিতরে|ভেতরে|উপরে|ওপরে|নিচে|নীচে|কাছে|পাশে|বাইরে|বাহিরে|সামনে|পিছনে|ওপারে|এপারে|তীরে|তলায়|"
    "ঘরে|বাড়িতে|গ্রামে|শহরে|দেশে|জলে|আকাশে|বনে|বাগানে|মাঠে|স্কুলে|বাজারে|সময়|সময়ে|দিনে|রাতে|রাত্রে|রাত্রি|সকালে|ভোরে|"
    "দুপুরে|বিকালে|বিকেলে|সন্ধ্যায়|সন্ধ্যাবেলায়|সকালবেলায়|কালে|বর্ষাকালে|শীতকালে|মাসে|বছরে|পরে|আগে|দিন|একদিন|সেদিন|"
    "পরদিন|তখন|এখন|আজ|হঠাৎ|অবশেষে"
)
_BEFORE_LAST = regex.compile(r"[\p{L}\p{M}]+র|এক|একদিন|সেই|এই|সে|কোনো|অনেক|প্রতি|কিছু|আজ|তখন|গভীর|ঐ|সেদিন|বড়ো?")
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


def begun_elsewhere(story: str, openings: Sequence[str], chance: random.Random) -> str:
    """The story from some sentence on, maybe one about a child and behind an opening; without a child, the whole."""
    every = sentences(story)
    starts = range(max(1, round(BEGUN_WITHIN * len(every))))
    about_a_child = [start for start in starts if every[start].split(" ", 1)[0] in _NAMES]
    if not about_a_child:
        return story
    if chance.random() < OPENED_SHARE:
        start = chance.choice(about_a_child)
        return f"{chance.choice(openings)} {''.join(every[start:])}"
    return "".join(every[chance.choice(starts) :])


def last_reading(stories: Sequence[str], others: Sequence[str]) -> list[str]:
    """Stories begun elsewhere, and passages of the others as they were: what is read last."""
    chance = random.Random(SEED)
    others = list(others)
    frames = [frame.strip() for line in FRAMES.strip().splitlines() for frame in line.split("|")]
    places = phrases(others)
    openings = places + frames * round(FRAMES_TO_PHRASES * len(places) / len(frames))
    told = [begun_elsewhere(story, openings, chance) for story in stories]
    wanted = OTHERS_SHARE / (1 - OTHERS_SHARE) * sum(map(len, told))
    chance.shuffle(others)
    sizes = itertools.accumulate(map(len, others))
    return told + [text for text, size in zip(others, sizes, strict=True) if size <= wanted]
