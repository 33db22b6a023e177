"""The quiz: asks, grades, shows the worked step where an answer is wrong, and counts.

It reads and writes through two functions, so a terminal, a pipe and a test are the same to it. An empty line passes a
question, the end of input ends the quiz. Where nobody is there to try again (a pipe), an answer that cannot be read
counts as it is; else it is asked once more.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from kotha.errors import UsageError
from kotha.inside.exercises.attention import attention_questions
from kotha.inside.exercises.counts import count_questions
from kotha.inside.exercises.flow import flow_questions
from kotha.inside.exercises.grading import FEWEST_DIGITS, Grade, Verdict, grade, readings
from kotha.inside.exercises.reflection import reflection_questions
from kotha.inside.exercises.setting import Question, Setting
from kotha.inside.worksheet.operations import written
from kotha.inside.worksheet.sheet import Sheet
from kotha.wording import Language, Words, ascii_digits

# A line of the student's; None when there is no more.
Read = Callable[[str], str | None]
Tell = Callable[[str], None]
_YES = ("y", "yes", "হ্যাঁ", "হ্যা", "হ", "হাঁ")
_SHOWN_DECIMALS = 6

RIGHT = Words("Right.", "ঠিক।")
WRONG = Words("Not right. The worked step:", "ঠিক হয়নি। হিসাবটি এমন:")
PASSED = Words("Passed over. The worked step:", "বাদ গেল। হিসাবটি এমন:")
COARSE = Words(
    "Near, but too coarse: give at least {digits} significant digits. The worked step:",
    "কাছাকাছি, কিন্তু খুব মোটা দাগের: অন্তত {digits}টি সার্থক অঙ্ক দিন। হিসাবটি এমন:",
).fill(digits=FEWEST_DIGITS)
UNREADABLE = Words(
    "Read {found} numbers, and the answer has {wanted}.", "{found}টি সংখ্যা পাওয়া গেল, উত্তরে থাকার কথা {wanted}টি।"
)
MODEL_ANSWER = Words("A model answer:", "একটি নমুনা উত্তর:")
AGREES = Words("Does yours agree? (y/n) ", "আপনার উত্তর কি মেলে? (হ্যাঁ/না) ")
SCORE = Words(
    "{right} of {graded} right ({percent:.0f} %); open questions compared: {open}.",
    "{graded}টির মধ্যে {right}টি ঠিক ({percent:.0f} %); {open}টি খোলা প্রশ্ন মেলানো হয়েছে।",
)
UNGRADED = Words("Open questions compared: {open}.", "{open}টি খোলা প্রশ্ন মেলানো হয়েছে।")
ENDED = Words("The input ended; questions not asked: {left}.", "ইনপুট শেষ; {left}টি প্রশ্ন করা হয়নি।")


@dataclass(frozen=True)
class Outcome:
    """What became of one question."""

    question: str
    typed: str
    verdict: Verdict
    expected: list[float | None] | None  # the right numbers, −∞ as null; None for an open question
    agrees: bool | None = None  # of an open question: what the student said of their own answer


@dataclass(frozen=True)
class Summary:
    """The whole quiz."""

    outcomes: tuple[Outcome, ...]
    asked: int

    @property
    def graded(self) -> int:
        """Questions that had a right answer and were reached."""
        return sum(outcome.expected is not None for outcome in self.outcomes)

    @property
    def right(self) -> int:
        """How many of them were right."""
        return sum(outcome.verdict is Verdict.RIGHT for outcome in self.outcomes)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "questions": self.asked,
            "graded": self.graded,
            "right": self.right,
            "ended_early": len(self.outcomes) < self.asked,
            "answers": [asdict(outcome) for outcome in self.outcomes],
        }


def all_questions(setting: Setting) -> list[Question]:
    """The workshop's questions, part by part, with answers for these sizes."""
    rooms = (attention_questions, flow_questions, count_questions, reflection_questions)
    return [question for room in rooms for question in room(setting)]


def choose(questions: Iterable[Question], wanted: str) -> list[Question]:
    """The questions of a number (7), or one part of it (7c), in either digits; or all."""
    known, wanted = list(questions), ascii_digits(wanted).strip().lower()
    if wanted in ("all", "সব"):
        return known
    by_number = wanted.isdigit()
    chosen = [
        each for each in known if (wanted == str(each.number) if by_number else each.id.lower().startswith(wanted))
    ]
    if not chosen:
        raise UsageError(f"there is no question {wanted!r}; use all, 1 to 12, or a part such as 7c or 10a")
    return chosen


class Quiz:
    """Asks questions one after the other."""

    def __init__(self, sheet: Sheet, language: Language, read: Read, tell: Tell, patient: bool = False) -> None:
        self._sheet, self._language, self._read, self._tell, self._patient = sheet, language, read, tell, patient

    def ask_all(self, questions: list[Question]) -> Summary:
        """Ask until the questions or the input end, then tell the score."""
        outcomes: list[Outcome] = []
        for question in questions:
            outcome = self._ask(question)
            if outcome is None:
                self._say(ENDED.fill(left=len(questions) - len(outcomes)))
                break
            outcomes.append(outcome)
        summary = Summary(tuple(outcomes), len(questions))
        n_open = sum(outcome.verdict is Verdict.OPEN for outcome in outcomes)
        if summary.graded:
            share = 100 * summary.right / summary.graded
            self._say(SCORE.fill(right=summary.right, graded=summary.graded, percent=share, open=n_open))
        elif n_open:
            self._say(UNGRADED.fill(open=n_open))
        return summary

    def _ask(self, question: Question) -> Outcome | None:
        self._tell(f"\n{question.id}. {question.text.to(self._language)}")
        for name in question.shows:
            for line in _matrix_lines(self._sheet, name):
                self._tell(line)
        typed = self._read("> ")
        if typed is None:
            return None
        if question.expected is None:
            return self._compare(question, typed.strip())
        typed = self._rest_of_matrix(question, typed)
        found = self._grade(question, typed)
        if found.verdict is Verdict.UNREADABLE and self._patient:
            again = self._read("> ")
            typed = typed if again is None else self._rest_of_matrix(question, again)
            found = self._grade(question, typed)
        if found.verdict is Verdict.RIGHT:
            self._say(RIGHT)
        else:
            self._explain(question, found)
        expected = [None if value == float("-inf") else value for value in question.expected.values]
        return Outcome(question.id, typed.strip(), found.verdict, expected)

    def _rest_of_matrix(self, question: Question, typed: str) -> str:
        """A matrix may be typed in one line or row by row: after one whole row, read the others."""
        expected = question.expected
        assert expected is not None, "an open question has no matrix"
        if expected.rows == 1 or expected.columns == 1 or len(readings(typed)[-1]) != expected.columns:
            return typed
        lines = [typed]
        while len(lines) < expected.rows:
            line = self._read(f"{len(lines) + 1}> ")
            if line is None or not line.strip():
                break
            lines.append(line)
        return " ; ".join(line.strip() for line in lines)

    def _grade(self, question: Question, typed: str) -> Grade:
        assert question.expected is not None, "an open question is not graded"
        if not typed.strip():
            return Grade(Verdict.SKIPPED)
        found = grade(typed, question.expected)
        if found.verdict is Verdict.UNREADABLE:
            self._say(UNREADABLE.fill(found=found.found, wanted=len(question.expected.values)))
        return found

    def _explain(self, question: Question, found: Grade) -> None:
        """The worked step; of a matrix the cell that went wrong, or all of it where none was given."""
        self._say({Verdict.COARSE: COARSE, Verdict.SKIPPED: PASSED}.get(found.verdict, WRONG))
        for words in question.worked:
            self._tell(f"  {words.to(self._language)}")
        for line in question.lines if found.place is None else [*question.lines[found.place : found.place + 1]]:
            self._tell(f"  {line}")

    def _compare(self, question: Question, typed: str) -> Outcome:
        """An open question: show a model answer, and let the student judge."""
        self._say(MODEL_ANSWER)
        for words in question.worked:
            self._tell(f"  {words.to(self._language)}")
        if not typed:
            return Outcome(question.id, typed, Verdict.SKIPPED, None)
        said = self._read(AGREES.to(self._language))
        return Outcome(question.id, typed, Verdict.OPEN, None, None if said is None else said.strip().lower() in _YES)

    def _say(self, words: Words) -> None:
        self._tell(words.to(self._language))


def _matrix_lines(sheet: Sheet, name: str) -> Iterator[str]:
    """A matrix as plain lines, its name before the first."""
    for row, values in enumerate(sheet.matrices[name].tolist()):
        before = f"{name} =" if row == 0 else ""
        yield f"  {before:<9} " + "  ".join(f"{written(value, _SHOWN_DECIMALS):>8}" for value in values)
