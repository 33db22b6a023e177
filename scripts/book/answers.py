"""Write the answers page, with the tutor's verdicts: ``python -m scripts.book.answers``.

For every question in the workshop and the assessment, the page shows a correct, a partly correct and a wrong answer as
a student would type it, with the tutor's verdict on each. Ten recognised mistakes follow. A test checks that the
verdicts are up to date.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scripts.book.chapters import LEARN, ROOT

LANGUAGES = ("en", "bn")
MARK = "<!-- written below by scripts/book/answers.py -->"
_LONGEST = 70
_ONLY_NUMBERS = re.compile(r"(?:[\d\s.,;()×/…+−-]|-inf)+")
# The mistakes to show, by their names in the catalogue.
SLIPS = (
    "noRoot",
    "widthForRoot",
    "notTurned",
    "rowForColumn",
    "otherMatrix",
    "maskForgotten",
    "softmaxDown",
    "noE",
    "early",
    "hiddenOne",
)
_SETS = {
    "workshop": {"en": "The twelve of the workshop", "bn": "কর্মশালার বারোটি"},
    "assessment": {"en": "The six of the assessment", "bn": "শেষের ছয়টি"},
}
_HEADER = {"en": ("", "typed", "points", "comment"), "bn": ("", "যা লেখা হলো", "নম্বর", "শিক্ষক যা বলেন")}
_KINDS = {
    "right": {"en": "right", "bn": "ঠিক"},
    "half": {"en": "half right", "bn": "আংশিক ঠিক"},
    "wrong": {"en": "wrong", "bn": "ভুল"},
}
_TEN = {"en": "Ten recognised mistakes", "bn": "দশটি চেনা ভুল"}
_TEN_HEADER = {
    "en": ("cell", "right", "typed", "comment"),
    "bn": ("ঘর", "ঠিক মান", "যা লেখা হলো", "শিক্ষক যা বলেন"),
}


def pages() -> dict[Path, str]:
    """Return the page in each language."""
    sys.path.insert(0, str(ROOT / "src"))
    made = {}
    for language in LANGUAGES:
        end = "" if language == "en" else ".bn"
        page = LEARN / f"answers{end}.md"
        by_hand, mark, _ = page.read_text(encoding="utf-8").partition(MARK)
        assert mark, f"{page.name} has no marker for the start of the generated part"
        parts = [f"{by_hand}{mark}\n", *_answered(language), f"## {_TEN[language]}\n", _recognised(language)]
        made[page] = "\n".join(parts).rstrip("\n") + "\n"
    return made


def _answered(language: Any) -> Iterator[str]:
    from tests.course.exercises.typed import half_right, marked, right, wrong

    from kotha.course.exercises.selection import QuestionChoice
    from kotha.i18n.catalogue import translate

    for name, titles in _SETS.items():
        yield f"## {titles[language]}\n"
        choice = QuestionChoice(set=name)  # type: ignore[arg-type]
        for question in choice.prepare():
            yield f"**{question.id}.** {_in_a_line(translate(question.text, language))}\n"
            rows = [_HEADER[language], ("---",) * 4]
            for kind, typed in (
                ("right", (right(question, language),)),
                ("half", half_right(question, language)),
                ("wrong", (wrong(question, language),)),
            ):
                outcome = marked(question, language, *typed)
                points = f"{outcome.points:g} / {outcome.possible}"
                shown = " → ".join(_short(each) for each in typed)
                said = marked(question, language, typed[0]).feedback  # the first of two attempts
                rows.append((_KINDS[kind][language], shown, points, _cell(" ".join(said)) or "—"))
            yield _table(rows)


def _recognised(language: Any) -> str:
    from tests.course.exercises.typed import recognised_slips

    from kotha.i18n.catalogue import translate

    rows = [_TEN_HEADER[language], ("---",) * 4]
    for slip in recognised_slips(SLIPS):
        cell = f"{slip.step}[{slip.row},{slip.column}]"
        rows.append(
            (cell, slip.truth, slip.typed, _cell(" ".join(translate(words, language) for words in slip.feedback)))
        )
    return _table(rows)


def _table(rows: list[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def _in_a_line(text: str) -> str:
    return _cell(" ".join(text.split()))


def _short(text: str) -> str:
    line = " ".join(text.split())
    line = line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1].rstrip()}…"
    return f"`{line}`" if _ONLY_NUMBERS.fullmatch(line) else _cell(line)


def _cell(text: str) -> str:
    """Escape a text for a table cell."""
    return " ".join(text.split()).replace("|", "\\|").replace("_", "\\_").replace("*", "\\*").replace("<", "&lt;")


def write() -> int:
    """Write the pages; return their number."""
    made = pages()
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    return len(made)


if __name__ == "__main__":
    print(f"{write()} files written")
