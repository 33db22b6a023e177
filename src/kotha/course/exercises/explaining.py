"""What a question shows, and how one gets to its answer, as plain lines."""

from collections.abc import Iterator

from kotha.course.exercises.judging import Judged
from kotha.course.exercises.setting import Question
from kotha.course.worksheet.operations import written
from kotha.course.worksheet.sheet import Sheet
from kotha.i18n.numbers import Language
from kotha.i18n.wording import Words

_SHOWN_DECIMALS = 6
WORKED = Words("The worked step:", "হিসাবটি এমন:")
MODEL_ANSWER = Words("A model answer:", "একটি নমুনা উত্তর:")
RUBRIC = Words(
    "What a good answer names (recognised by words; read it yourself too):",
    "ভালো উত্তরে যা থাকে (শব্দ দেখে মেলানো; নিজেও পড়ে দেখুন):",
)
NEEDED = Words("of these, {needed}:", "এগুলোর মধ্যে {needed}টি:")


def shown(question: Question, sheet: Sheet, language: Language) -> Iterator[str]:
    """What one needs to answer: matrices of the sheet, or pieces to put in order."""
    for name in question.shows:
        yield from _matrix_lines(sheet, name)
    if question.order is not None:
        for number, piece in enumerate(question.order.shown, 1):
            yield f"  {number}. {piece.to(language)}"


def explained(question: Question, judged: Judged, language: Language) -> Iterator[str]:
    """How one gets there: the worked step, of a matrix the cell that went wrong; of words what should be named."""
    if question.rubric is not None and question.order is None:
        yield RUBRIC.to(language)
        named = judged.reading.named if judged.reading is not None else ()
        for part in question.rubric.parts:
            if part.needed < len(part.things):
                yield f"  {NEEDED.fill(needed=part.needed).to(language)}"
            for thing in part.things:
                yield f"  {'✓' if thing in named else '–'} {thing.label.to(language)}"
        yield MODEL_ANSWER.to(language)
    else:
        yield WORKED.to(language)
    for words in question.worked:
        yield f"  {words.to(language)}"
    place = judged.grade.place if judged.grade is not None else None
    yield from (f"  {line}" for line in (question.lines if place is None else question.lines[place : place + 1]))


def _matrix_lines(sheet: Sheet, name: str) -> Iterator[str]:
    """A matrix as plain lines, its name before the first."""
    for row, values in enumerate(sheet.matrices[name].tolist()):
        before = f"{name} =" if row == 0 else ""
        yield f"  {before:<9} " + "  ".join(f"{written(value, _SHOWN_DECIMALS):>8}" for value in values)
