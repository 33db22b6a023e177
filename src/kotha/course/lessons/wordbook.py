"""What lessons say, in both languages: one JSON file a lesson in ``words/``, and one of words that they share."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from kotha.i18n.message import Bilingual

FOLDER = Path(__file__).parent / "words"


class Wordbook:
    """The words of one lesson, by their keys; what it has not is looked up among the shared ones."""

    def __init__(self, lesson: str) -> None:
        self._words = {**_read("common"), **_read(lesson)}

    def __getitem__(self, key: str) -> Bilingual:
        return self._words[key]

    def say(self, key: str, **figures: Any) -> Bilingual:
        """A sentence with its figures.

        >>> str(Wordbook("mask").say("writes", blind=1.5, honest=1.25))
        'Given the past alone, its loss is 1.50, with the mask 1.25: it can still write.'
        """
        return self._words[key].fill(**figures)


@cache
def _read(name: str) -> dict[str, Bilingual]:
    found = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return {key: Bilingual(entry["en"], entry["bn"]) for key, entry in found.items()}
