"""Figures that a chapter cites, rather than computes, equal those in the results files."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripts.book.chapters import LEARN, Chapter

from kotha.course.lessons.result import LessonResult

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


def names_of(chapter: str, begins: str) -> dict[str, Any]:
    """Return the literal data that a code block of a chapter defines, by name."""
    parts = Chapter(LEARN / chapter).parts
    block = next(part.text for part in parts if part.kind == "python" and part.text.startswith(begins))
    written = ast.Module([each for each in ast.parse(block).body if isinstance(each, ast.Assign)], [])
    found: dict[str, Any] = {}
    exec(compile(written, chapter, "exec"), found)
    return found


def test_what_helps_is_what_was_measured() -> None:
    rows = json.loads((RESULTS / "question_12b.json").read_text(encoding="utf-8"))["figures"]["rows"]
    reached = {row["condition"]: row["bits_per_byte"] for row in rows}
    result = names_of("07-training.md", "at_the_end")
    assert result["at_the_end"] == reached["as the course ran, 5,500 steps later"]
    assert result["at_its_best"] == reached["as the course ran, stopped early"]
    assert (
        result["schedule_fits"]
        == result["dropout"][0.2]
        == result["text_share"]["1"]
        == reached["the course, 4,000 steps"]
    )
    assert {share: value for share, value in result["dropout"].items() if share != 0.2} == {
        share: reached[f"dropout {share:g}"] for share in (0.0, 0.1, 0.3, 0.5)
    }
    assert result["others"] == {name: reached[name] for name in result["others"]}
    assert result["text_share"]["with other prose"] == reached["with other prose"]
    assert [result["text_share"][part] for part in ("1/8", "1/4", "1/2")] == [
        reached[f"{part} of the text"] for part in ("1/8", "1/4", "1/2")
    ]


def test_how_often_texts_repeat_is_what_was_measured() -> None:
    figures = json.loads((RESULTS / "writing_defaults.json").read_text(encoding="utf-8"))["figures"]
    measured = [round(value, 4) for value in repeats(figures)]
    result = names_of("08-writing.md", "repeats")["repeats"]
    assert list(result.values()) == measured[: len(result)], "people first, then the temperatures in their order"


def repeats(value: Any) -> Iterator[float]:
    """Return all shares of repeated four-word sequences, in the order of the file."""
    for key, each in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        if key == "repeats_4":
            yield each
        else:
            yield from repeats(each)


@pytest.mark.parametrize(("lesson", "chapter"), [("lstm", "03-attention"), ("vision", "09-family")])
@pytest.mark.parametrize(("language", "end"), [("en", ""), ("bn", ".bn")])
def test_a_lesson_s_table_in_a_chapter_is_that_of_its_results(
    lesson: str, chapter: str, language: str, end: str
) -> None:
    measured = json.loads((RESULTS / "lessons" / f"{lesson}.json").read_text(encoding="utf-8"))
    table = LessonResult(measured).markdown(language)
    assert f"\n\n{table}\n" in (LEARN / f"{chapter}{end}.md").read_text(encoding="utf-8")
