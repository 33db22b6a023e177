"""The training text of the bundled model: its sources, cleaning, and the held-out documents.

There are three sources, which may all be shared: Tagore's fiction (public domain), the leads of Bangla Wikipedia
articles (CC BY-SA 4.0), and the built-in stories (part of this project). Only prose is kept: headings, verse, plays,
lists, markup and brackets with other scripts are removed, because they would take up much of the capacity of a small
model.

A work is divided into passages at the ends of paragraphs, so that the model sees as many beginnings in the style of a
story as in that of an encyclopaedia. Complete works are held out, before they are divided.
"""

import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import regex

from kotha.text.clean.duplicates import mark_duplicates
from kotha.text.clean.language import count_scripts
from kotha.text.corpus.documents import read_documents
from kotha.text.normalize import Normalizer
from kotha.text.parallel.local import LocalPool
from kotha.text.stories.corpus import stories

HELD_OUT = 0.02  # share of the documents from each source
PASSAGE_CHARACTERS = 2400
STORIES = 6000  # two fifths of the bytes; with an eighth, few continuations were coherent (docs/dev/experiments.md)
STORIES_SEED = 20

_NORMALIZER = Normalizer()
# A line that ends in a dash is interrupted speech.
_SENTENCE_END = regex.compile(r"[।?!”’\"'—…]$")
_BRACKETS = regex.compile(r"\s*[(\[][^()\[\]]*[)\]]")
_MARKUP = regex.compile(r"https?:|www\.|[{}\\=*|<>_#+×]|আইএসবিএন|তথ্যসূত্র|উদ্ধৃতি শৈলী")
# Articles about sex and sexual violence are excluded, because the model is shown in classrooms.
_NOT_FOR_CLASSES = regex.compile(r"যৌন|ধর্ষণ|পর্নো|পতিতাবৃত্তি|বেশ্যা")
_SPEAKER = regex.compile(r"\S{2,14}(?: \S{2,10})?। ")
_SHORT_LINE = 60  # characters: a line of verse, or a heading
_LEAST_DOCUMENT = 120
_FOREIGN_SHARE = 0.05
_PLAY_SHARE = 0.5


def plain(line: str) -> str:
    """Remove brackets from a line, and normalize its spaces and dashes.

    >>> plain("নদী (ইংরেজি: River) হল স্রোত ।তার জল")
    'নদী হল স্রোত। তার জল'
    """
    line = _NORMALIZER(line)
    for _ in range(2):  # brackets in brackets
        line = _BRACKETS.sub("", line)
    line = regex.sub(r"[\u200e\u200f\u00ad\ufeff]", "", line).replace("–", "—").replace("৷", "।").replace("--", "—")
    line = regex.sub(r" - ", " — ", line)
    line = regex.sub(r"\s+", " ", line)
    line = regex.sub(r" +([।,;:?!”’])", r"\1", line)
    line = regex.sub(r"([“‘]) +", r"\1", line)
    line = regex.sub(r"([।?!,;])(?=[\p{L}“‘])", r"\1 ", line)
    return line.strip()


def _is_prose(line: str) -> bool:
    """Return whether a line is in Bangla, ends like a sentence, and has no markup."""
    letters = count_scripts(line)
    total = sum(letters.values())
    foreign = total - letters.get("Bengali", 0)
    return (
        total > 0
        and foreign <= _FOREIGN_SHARE * total
        and not _MARKUP.search(line)
        and _SENTENCE_END.search(line) is not None
    )


def prose_of_work(text: str) -> list[str]:
    """Return the paragraphs of a work of fiction; empty for a play."""
    lines = [line for line in map(plain, text.split("\n")) if line]
    if sum(bool(_SPEAKER.match(line)) for line in lines) > _PLAY_SHARE * len(lines):
        return []
    paragraphs: list[str] = []
    unfinished, verse = "", False
    for line in lines:
        line = f"{unfinished} {line}".strip()
        unfinished = ""
        ends = _SENTENCE_END.search(line) is not None
        if not ends and len(line) > _SHORT_LINE:  # the end of a page interrupted the paragraph
            unfinished = line
            continue
        # A short line after a line without a sentence end is the end of a stanza.
        verse = (not ends or verse) and len(line) <= _SHORT_LINE and not line.startswith(("“", "‘"))
        if not verse and _is_prose(line):
            paragraphs.append(line)
    return paragraphs


def prose_of_lead(text: str) -> list[str]:
    """Return the paragraphs before the first heading of an article; empty if it is unsuitable for classrooms."""
    if _NOT_FOR_CLASSES.search(text):
        return []
    lines = itertools.takewhile(lambda line: not line.strip().startswith("="), text.split("\n"))
    return [line for line in map(plain, lines) if len(line) > _SHORT_LINE and line.endswith("।") and _is_prose(line)]


def passages(paragraphs: Iterable[str]) -> Iterator[str]:
    """Join paragraphs into passages of about the same length."""
    waiting: list[str] = []
    for paragraph in paragraphs:
        waiting.append(paragraph)
        if sum(map(len, waiting)) >= PASSAGE_CHARACTERS:
            yield "\n".join(waiting)
            waiting = []
    if waiting:
        yield "\n".join(waiting)


def generated(seed: int, count: int, kinds: Sequence[str] | None = None) -> list[str]:
    """Return this number of built-in stories as prose, optionally only of some kinds."""
    written = itertools.islice(stories(seed, kinds=kinds), count)
    return ["\n".join(filter(_is_prose, map(plain, each.text.split("\n")))) for each in written]


def documents(data: Path) -> dict[str, list[list[str]]]:
    """Return the documents from each source, divided into passages, without duplicates and near duplicates."""
    prose = data / "prose"
    works = [prose_of_work(each.text) for each in read_documents([prose / "tagore-000.jsonl.zst"])]
    leads = [prose_of_lead(each.text) for each in read_documents([prose / "wiki_concepts-000.jsonl.zst"])]
    joined = ["\n".join(paragraphs) for paragraphs in (*works, *leads)]
    is_new = iter([new for _, new in mark_duplicates(joined, "near", LocalPool(1))])
    found: dict[str, list[list[str]]] = {
        "tagore": [list(passages(work)) for work in works if next(is_new)],
        "wikipedia": [["\n".join(lead)] for lead in leads if next(is_new)],
        "stories": [[text] for text in generated(STORIES_SEED, STORIES)],
    }
    return {
        source: [each for each in every if sum(map(len, each)) >= _LEAST_DOCUMENT] for source, every in found.items()
    }


def split(found: dict[str, list[list[str]]], seed: int = 0) -> dict[str, dict[str, list[str]]]:
    """Divide the passages from each source into train and held_out; a document is never split between them."""
    parts: dict[str, dict[str, list[str]]] = {"train": {}, "held_out": {}}
    for source, every in found.items():
        wanted = max(1, round(HELD_OUT * len(every)))
        chosen = set(random.Random(f"{seed}:{source}").sample(range(len(every)), wanted))
        for index, document in enumerate(every):
            parts["held_out" if index in chosen else "train"].setdefault(source, []).extend(document)
    return parts
