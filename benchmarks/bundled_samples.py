"""Seventy texts by the bundled model for a reader to judge, with various prompts and the defaults of `kotha generate`.

    python benchmarks/bundled_samples.py write WORK       benchmarks/results/bundled_samples.json, every verdict open
    python benchmarks/bundled_samples.py judge 1 4 5 …    those texts are a few coherent sentences, the others are not

A text is coherent if its first sentences are grammatical, belong together, are consistent in persons and numbers, and
continue the prompt. The sentences need not be true.

Fifty of the prompts have been the same since the first model, and the author of the last stage's openings (in WORK)
knew them; the other twenty were added later. For each text, the number of passages in the last training data that begin
in the same way is given.
"""

import json
import sys
from pathlib import Path
from typing import Any

import regex
from record import RESULTS, save

TOKENS = 80
BEGINNINGS = """
আমি | সে | তুমি কি | আমরা সবাই | মা | বাবা বললেন, | রাজা | একজন বৃদ্ধ | ছোট মেয়েটি | শিক্ষক
নদীর ধারে | গ্রামের পথে | শহরের মাঝখানে | পাহাড়ের ওপারে | ঘরের মধ্যে | জানালার বাইরে | স্কুলে | বাজারে গিয়ে
একদিন সকালে | তখন রাত্রি | শীতের দুপুরে | বর্ষাকালে | অনেক দিন আগে | পরদিন | হঠাৎ | সন্ধ্যাবেলায়
বাংলাদেশ | ঢাকা শহর | ভারতের একটি | পৃথিবী | বিজ্ঞান হল | ক্রিকেট | বাংলা ভাষা | এই গ্রন্থটি | ১৯৭১ সালে
তিনি একজন বিখ্যাত | চলচ্চিত্রটি | রবীন্দ্রনাথ | “কোথায় যাচ্ছ?” | “আমি যাব না।” | কেন যে | যদি
ভালোবাসা | দুঃখের কথা এই যে, | আজ বৃষ্টি হচ্ছে | গাছে একটি পাখি | রহিমের একটি গরু ছিল। | চাঁদ উঠেছে, | বন্ধুরা মিলে | সেই কথা শুনিয়া
"""
OTHERS = """
মেয়েটি | রাতে | বিড়ালটা | আকাশে মেঘ | দাদু বললেন, | গত বছর | তারা দুজনে | একটি ছোট পাখি | সকালে উঠে | বইটি
মানুষ | এক ছিল রাজা | পুকুরে | তোমার নাম কী? | কলকাতা | খুব গরম পড়েছে। | ভাই আমার | নৌকাটা | শেষ পর্যন্ত | আমার বাড়ি
"""


def beginnings(lines: str = BEGINNINGS) -> list[str]:
    """Return all prompts, in order."""
    return [each.strip() for line in lines.strip().splitlines() for each in line.split("|")]


def times_read(beginning: str, passages: list[str]) -> int:
    """Return the number of passages that begin with these complete words.

    >>> times_read("রাজা", ["রাজা এলেন।", "রাজার বাড়ি।", "এক রাজা।"])
    1
    """
    begins_so = regex.compile(regex.escape(beginning) + r"(?![\p{L}\p{M}])")
    return sum(begins_so.match(passage) is not None for passage in passages)


def write(work: Path) -> None:
    import kotha

    lm = kotha.load()
    last = (work / "text" / "last.jsonl").read_text(encoding="utf-8").splitlines()
    passages = [json.loads(line)["text"] for line in last]

    def written(given: list[str]) -> list[dict[str, Any]]:
        return [
            {"text": text, "coherent": None, "times_read": times_read(beginning, passages)}
            for beginning, text in zip(given, lm.generate(given, tokens=TOKENS), strict=True)
        ]

    figures = {"tokens": TOKENS, "texts": written(beginnings()), "others": written(beginnings(OTHERS))}
    save("bundled_samples", figures, ["torch"])


def judge(numbers: set[int]) -> None:
    path = Path(RESULTS / "bundled_samples.json")
    found = json.loads(path.read_text(encoding="utf-8"))
    for number, each in enumerate(found["figures"]["texts"] + found["figures"]["others"], 1):
        each["coherent"] = number in numbers
    path.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(Path(sys.argv[2]))
    else:
        judge(set(map(int, sys.argv[2:])))
