"""What a tokenizer.json of a stranger may say that the library below takes without a word, and then falls over."""

import json
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from kotha.errors import TokenizerError

_MOST_DOUBLINGS = 6  # our own normalization has a few such steps twice


def refuse_fatal(text: str) -> None:
    """Refuse what would end the process, or fill its memory."""
    try:
        state = json.loads(text)
    except RecursionError as error:
        raise TokenizerError("not a tokenizer.json that can be read: nested too deeply") from error
    except ValueError:
        return  # the library says so in its own words
    if isinstance(state, dict):
        with suppress(LookupError, TypeError, AttributeError):  # not of this shape, which the library says too
            _refuse_short_merges(state["model"])
        for part in ("normalizer", "pre_tokenizer", "decoder"):
            _refuse_doubling(part, state.get(part))


def _refuse_short_merges(model: dict[str, Any]) -> None:
    """`tokenizers` cuts a merge's right side after its prefix, there or not."""
    prefix = model.get("continuing_subword_prefix") or ""
    rights = (merge.split(" ")[-1] if isinstance(merge, str) else merge[-1] for merge in model.get("merges", []))
    bad = next((right for right in rights if prefix and not right.startswith(prefix)), None)
    if bad is not None:
        raise TokenizerError(
            "a merge's right side {bad!r} does not begin with {prefix!r}, the prefix inside words",
            bad=bad,
            prefix=prefix,
        )


def _refuse_doubling(part: str, state: object) -> None:
    """A step that makes a text longer, and stands there again and again: thirty of them make a letter into gigabytes.

    >>> _refuse_doubling("pre_tokenizer", {"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}] * 9})
    Traceback (most recent call last):
    kotha.errors.TokenizerError: its pre_tokenizer has ByteLevel 9 times; each can make a text 2 times as long
    """
    for (name, longer), times in Counter(map(_growth, _flat(state))).items():
        if times > 1 and times * math.log2(longer) > _MOST_DOUBLINGS:
            raise TokenizerError(
                "its {part} has {name} {times} times; each can make a text {longer} times as long",
                part=part,
                name=name,
                times=times,
                longer=longer,
            )


def _flat(state: object) -> Iterator[dict[str, Any]]:
    """The steps of a pipeline, those of sequences within it too."""
    left = [state]
    while left:
        step = left.pop()
        if isinstance(step, dict):
            inside = [value for value in step.values() if isinstance(value, list)]
            left += [each for values in inside for each in values]
            yield step


def _growth(step: dict[str, Any]) -> tuple[str, int]:
    """What to call a step, and how many times as long it can make a text on which it has been before."""
    kind, content, pattern = step.get("type"), step.get("content"), step.get("pattern")
    if kind == "ByteLevel":
        return "ByteLevel", 2
    if kind == "Replace" and isinstance(content, str) and isinstance(pattern, dict):
        plain = pattern.get("String")
        again = content.count(plain) if isinstance(plain, str) else len(content)  # a regex may match any letter
        return f"Replace {json.dumps(pattern, ensure_ascii=False)} by {content!r}", max(again, 1)
    return str(kind), 1
