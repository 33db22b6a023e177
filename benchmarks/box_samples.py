"""Fifty texts of the model in the box, to be read by eye: beginnings of all kinds, `kotha generate`'s own settings.

    python benchmarks/box_samples.py write     benchmarks/results/box_samples.json, every verdict open
    python benchmarks/box_samples.py judge 1 4 5 …    those texts are a few coherent sentences, the others are not

A text is coherent if its first sentences are grammatical, belong together, and go on from the beginning that was given.
Whether they are true is not asked.
"""

import json
import sys
from pathlib import Path

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


def beginnings() -> list[str]:
    """All of them, in their order."""
    return [each.strip() for line in BEGINNINGS.strip().splitlines() for each in line.split("|")]


def write() -> None:
    import kotha

    texts = kotha.load().generate(beginnings(), tokens=TOKENS)
    figures = {"tokens": TOKENS, "texts": [{"text": text, "coherent": None} for text in texts]}
    # To be filled in by hand, from somebody who had no part in it.
    figures["another_reader"] = {"beginnings": None, "coherent": None, "coherent_kindly": None}
    save("box_samples", figures, ["torch"])


def judge(numbers: set[int]) -> None:
    path = Path(RESULTS / "box_samples.json")
    found = json.loads(path.read_text(encoding="utf-8"))
    for number, each in enumerate(found["figures"]["texts"], 1):
        each["coherent"] = number in numbers
    path.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write()
    else:
        judge(set(map(int, sys.argv[2:])))
