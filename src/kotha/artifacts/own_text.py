"""A model's own language, and text in it: from the data it was held back from, or from its tokenizer.

The built-in texts are Bangla, so they fit Bangla models. They are used for models of unknown language too.
"""

import random
import re
from itertools import islice
from pathlib import Path

from kotha.artifacts.description import CONFIG_FILE
from kotha.artifacts.run_folder import find_data, run_config, words
from kotha.errors import KothaError
from kotha.storage.bundled import CARD_FILE
from kotha.storage.json_files import read_table
from kotha.storage.status import is_file, reading
from kotha.text.shards import Dataset
from kotha.text.tokenizer.tokenizer import Tokenizer

BANGLA = "bn"
_CODE = re.compile(r"[a-z]{2,3}")
_OPENING_WORDS, _LINE_TOKENS = 3, 12


def language_in(config: dict[str, object]) -> str | None:
    """Return the language in the config of a run or model folder, as an ISO 639 code.

    >>> language_in({"language": "de"}), language_in({"language": "any: thing"})
    ('de', None)
    """
    found = words(config, "language")
    return found if found and _CODE.fullmatch(found) else None


def stated(card: str, name: str) -> str | None:
    """Return the value of a line in the front matter of a model card."""
    front = re.match(r"---\n(.*?)^---$", card, re.DOTALL | re.MULTILINE)
    found = re.search(rf"^{name}: \"?([^\s\"]+)\"?$", front[1], re.MULTILINE) if front else None
    return found[1] if found else None


def model_language(folder: Path | None) -> str | None:
    """Return the language that the config or the model card of a run or model folder states, if any."""
    if folder is None:
        return None
    config, card = folder / CONFIG_FILE, folder / CARD_FILE
    found = language_in(read_table(config)) if is_file(config) else None
    if found is None and is_file(card):
        with reading(card):
            found = language_in({"language": stated(card.read_text(encoding="utf-8", errors="replace"), "language")})
    return found


def own_lines(folder: Path | None, tokenizer: Tokenizer | None, most: int) -> list[str] | None:
    """Return lines in a model's own language; None if it is Bangla or unknown, so that the built-in texts fit."""
    if tokenizer is None or folder is None or model_language(folder) in (None, BANGLA):
        return None
    lines = list(islice(_held_out_lines(folder), most))
    return lines or _lines_of_pieces(tokenizer, most)


def own_opening(folder: Path | None, tokenizer: Tokenizer | None) -> str | None:
    """Return the beginning of a text in a model's own language; None as in ``own_lines``."""
    lines = own_lines(folder, tokenizer, 1)
    return " ".join(lines[0].split()[:_OPENING_WORDS]) if lines else None


def _held_out_lines(run: Path) -> "list[str]":
    """Return the lines of the first held-out documents in a run's data folder; none if it is gone."""
    data = find_data(run_config(run), run)
    if data is None:
        return []
    try:
        dataset = Dataset(data, verify=False)
        documents = islice(dataset["validation"], 100)
        texts = [dataset.tokenizer.decode(document.tolist()) for document in documents]
    except KothaError:
        return []
    return [line for text in texts for line in text.splitlines() if len(line.split()) >= _OPENING_WORDS]


def _lines_of_pieces(tokenizer: Tokenizer, most: int) -> list[str]:
    """Return lines of random tokens, which are at least in the model's script."""
    ids = sorted(set(range(tokenizer.vocab_size)) - set(tokenizer.special.values()))
    draw = random.Random(0)
    return [tokenizer.decode(draw.choices(ids, k=_LINE_TOKENS)) for _ in range(most)]
