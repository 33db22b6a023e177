"""Write the page of demonstrations from the measured results: ``python -m scripts.book.demonstrations``.

Only the first paragraphs are written by hand; tables, sentences and pictures are generated from
``benchmarks/results/lessons``. A test checks that the page matches those files.
"""

import json
import sys
from pathlib import Path
from typing import Literal

from scripts.book.chapters import IMAGES, LEARN, ROOT
from scripts.book.slugs import slug

RESULTS = ROOT / "benchmarks" / "results" / "lessons"
LANGUAGES: tuple[Literal["en", "bn"], ...] = ("en", "bn")
MARK = "<!-- written below by scripts/book/demonstrations.py -->"
_HEADER = {"en": ("lesson", "question", "result"), "bn": ("পাঠ", "প্রশ্ন", "যা দেখা গেল")}
_COST = {
    "en": "`kotha lessons run {name}`: {seconds:.0f} seconds on one core with {seeds} seeds.",
    "bn": "`kotha lessons run {name} --language bn`: {seeds}টি সিডে এক কোরের {seconds:.0f} সেকেন্ড।",
}


def pages() -> dict[Path, str]:
    """Return all files with their text: one page per language, one picture per lesson and language."""
    sys.path.insert(0, str(ROOT / "src"))
    from kotha.course.lessons.catalogue import lessons
    from kotha.course.lessons.result import LessonResult
    from kotha.i18n.catalogue import translate

    found = {
        each.name: LessonResult(json.loads((RESULTS / f"{each.name}.json").read_text(encoding="utf-8")))
        for each in lessons()
    }
    made: dict[Path, str] = {}
    for language in LANGUAGES:
        end = "" if language == "en" else ".bn"
        questions = {each.name: translate(each.question, language) for each in lessons()}
        rows = [_HEADER[language], ("---",) * 3]
        rows += [
            (f"[{name}](#{slug(questions[name], '-')})", questions[name], result.plain["reading"][0][language])
            for name, result in found.items()
        ]
        page = LEARN / f"demonstrations{end}.md"
        parts = [first_paragraphs(page), "\n".join(f"| {' | '.join(row)} |" for row in rows)]
        for name, result in found.items():
            picture = f"lesson-{name}{end}.svg"
            made[IMAGES / picture] = result.svg(language)
            seconds, seeds = result.plain["about"]["processor_seconds"], len(result.plain["about"]["seeds"])
            parts += [
                f"## {questions[name]}",
                result.markdown(language),
                "\n\n".join(sentence[language] for sentence in result.plain["reading"]),
                f"![{result.plain['drawing']['title'][language]}](../images/book/{picture})",
                _COST[language].format(name=name, seconds=seconds, seeds=seeds),
            ]
        made[page] = "\n\n".join(parts) + "\n"
    return made


def first_paragraphs(page: Path) -> str:
    """Return the part that is written by hand: everything up to and including the mark."""
    by_hand, mark, _ = page.read_text(encoding="utf-8").partition(MARK)
    assert mark, f"{page.name} has no marker for the start of the generated part"
    return by_hand + mark


def write() -> int:
    """Write the files; return their number."""
    made = pages()
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    return len(made)


if __name__ == "__main__":
    print(f"{write()} files written")
