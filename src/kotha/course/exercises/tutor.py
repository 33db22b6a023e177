"""The tutor asks questions, gives hints, explains mistakes, allows a second attempt and counts points.

The tutor reads and writes through two functions, so it works the same way in a terminal, with a pipe and in a test. An
empty line skips a question, ``?`` asks for a hint, and the end of input ends the quiz. Corrections made in a second
attempt earn half their points. If the input is a pipe, there is only one attempt, and an answer that cannot be parsed
is not requested again. The same questions can be printed with their answer key. The key is not a secret: anyone with
Kotha can print it for any seed.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kotha.course.exercises.grading import GradedAnswer, Outcome, Summary, judge, mark
from kotha.course.exercises.number_comparison import FEWEST_DIGITS, Verdict, readings
from kotha.course.exercises.questions import Question
from kotha.course.worksheet.operations import written
from kotha.i18n.catalogue import translate
from kotha.i18n.message import Message
from kotha.i18n.numbers import Language

# Reads a line after a prompt; None at the end of input.
Read = Callable[[str], str | None]
_ASKS_FOR_HINT = ("?", "hint", "ইঙ্গিত")
_DECIMALS = 6

RULES = Message("An empty line skips a question; ? shows a hint (each hint costs a tenth of the points).")
_VERDICTS = {
    Verdict.RIGHT: Message("Right."),
    Verdict.PARTLY: Message("Partly right."),
    Verdict.SKIPPED: Message("Skipped."),
    Verdict.COARSE: Message(
        "Close, but not precise enough: give at least {digits} significant digits.", digits=FEWEST_DIGITS
    ),
}


@dataclass
class Quiz:
    """A quiz, which asks its questions one after another."""

    language: Language
    read: Read
    write: Callable[[str], None]
    tries: int = 1
    on_answer: Callable[[Outcome], None] | None = None
    _hints: int = field(default=0, init=False)

    def ask_all(self, questions: list[Question], done: tuple[Outcome, ...] = ()) -> Summary:
        """Ask all questions that have no outcome in ``done``, until the input ends; then print the score."""
        outcomes, answered = list(done), {outcome.question for outcome in done}
        left = [question for question in questions if question.id not in answered]
        for number, question in enumerate(left):
            outcome = self._ask(question)
            if outcome is None:
                self._write(Message("End of input; questions not asked: {left}.", left=len(left) - number))
                break
            outcomes.append(outcome)
            if self.on_answer is not None:
                self.on_answer(outcome)
        summary = Summary(tuple(outcomes), questions)
        if outcomes:
            self._write_score(summary)
        return summary

    def _write_score(self, summary: Summary) -> None:
        self._write(
            Message(
                "{points} of {possible} points ({percent:.0f}%); {right} of {asked} answers fully correct.",
                points=_number(summary.points),
                possible=summary.worth,
                percent=100 * summary.points / summary.worth,
                right=summary.right,
                asked=len(summary.outcomes),
            )
        )
        if summary.bonus:
            self._write(Message("{bonus} of these are bonus points.", bonus=_number(summary.bonus)))

    def _ask(self, question: Question) -> Outcome | None:
        template = "{points} bonus points" if question.bonus else "{points} points"
        self.write(f"\n{_asked(question, Message(template, points=question.points), self.language)}")
        for line in shown(question, self.language):
            self.write(line)
        self._hints = 0
        tries: list[str] = []
        excused = self.tries == 1  # in a terminal, an answer that cannot be parsed can be retyped once
        while True:
            typed = self._answer(question)
            if typed is None:
                return self._done(question, tries) if tries else None
            judged = judge(question, typed)
            if judged.verdict is Verdict.UNREADABLE and not excused:
                excused = True
                self._write(*judged.feedback)
                continue
            tries.append(typed)
            if judged.credit == 1 or judged.verdict is Verdict.SKIPPED or len(tries) >= self.tries:
                return self._done(question, tries)
            self._react(judged)
            self._write(Message("Try once more; corrections now earn half the points."))

    def _answer(self, question: Question) -> str | None:
        """Read a complete answer, giving hints when asked."""
        while (typed := self.read("> ")) is not None:
            if typed.strip().lower() not in _ASKS_FOR_HINT:
                return self._rest_of_matrix(question, typed).strip()
            if self._hints >= len(question.hints):
                self._write(Message("There are no more hints."))
            else:
                self._write(Message("Hint: {hint}", hint=question.hints[self._hints]))
                self._hints += 1
        return None

    def _rest_of_matrix(self, question: Question, typed: str) -> str:
        """Read the remaining rows of a matrix if the first line is one complete row."""
        expected, lines = question.expected, [typed.strip()]
        if expected is None or expected.columns == 1 or len(readings(typed)[-1]) != expected.columns:
            return typed
        while len(lines) < expected.rows and (line := self.read(f"{len(lines) + 1}> ")) and line.strip():
            lines.append(line.strip())
        return " ; ".join(lines)

    def _react(self, judged: GradedAnswer) -> None:
        self._write(_VERDICTS.get(judged.verdict, Message("Not right.")), *judged.feedback)

    def _done(self, question: Question, tries: list[str]) -> Outcome:
        """Print the result and, unless the answer was right, the solution."""
        outcome = mark(question, tuple(tries), self._hints, self.language)
        last = judge(question, tries[-1])
        self._react(last)
        if last.credit < 1 or question.rubric is not None:
            for line in explained(question, last, self.language):
                self.write(line)
        if outcome.points < question.points:
            got = _number(outcome.points)
            self._write(Message("{got} of {points} points.", got=got, points=question.points))
        return outcome

    def _write(self, *messages: Message) -> None:
        for each in messages:
            self.write(translate(each, self.language))


def _number(points: float) -> float | int:
    """Format a number of points, without the decimal if it is zero."""
    return int(points) if points == int(points) else points


def _asked(question: Question, worth: Message, language: Language) -> str:
    return f"{question.id}. {translate(question.text, language)} [{translate(worth, language)}]"


def shown(question: Question, language: Language) -> Iterator[str]:
    """Yield lines with the matrices or the pieces that a question shows."""
    for name in question.shows:
        for row, values in enumerate(question.sheet.matrices[name].tolist()):
            before = f"{name} =" if row == 0 else ""
            yield f"  {before:<9} " + "  ".join(f"{written(value, _DECIMALS):>8}" for value in values)
    if question.order is not None:
        for number, piece in enumerate(question.order.shown, 1):
            yield f"  {number}. {translate(piece, language)}"


def explained(question: Question, judged: GradedAnswer, language: Language) -> Iterator[str]:
    """Yield the solution, with the wrong cell for a matrix, or the things to mention for an answer in words."""
    if question.rubric is not None:
        yield translate(Message("A good answer mentions (matched by keywords; check it yourself too):"), language)
        for part in question.rubric.parts:
            if part["enough"] < len(part["things"]):
                yield f"  {translate(Message('{needed} of these:', needed=part['enough']), language)}"
            for thing in part["things"]:
                yield f"  {'✓' if thing in judged.named else '–'} {thing[language]}"
        yield translate(Message("A model answer:"), language)
    else:
        yield translate(Message("Worked solution:"), language)
    yield from (f"  {translate(line, language)}" for line in question.worked)
    wrong = slice(None) if judged.place is None else slice(judged.place, judged.place + 1)
    yield from (f"  {line}" for line in question.lines[wrong])


def paper_lines(questions: list[Question], language: Language, answers: bool) -> Iterator[str]:
    """Yield the questions as lines to print, with answers and solutions if ``answers`` is set."""
    for question in questions:
        yield _asked(question, Message("{points} points", points=question.points), language)
        yield from shown(question, language)
        if answers:
            if right := answer_of(question):
                yield from f"  {translate(Message('Answer: {answer}', answer=right), language)}".splitlines()
            yield from explained(question, GradedAnswer(Verdict.SKIPPED), language)
        yield ""


def answer_of(question: Question) -> str:
    """Return an answer that earns full marks, or an empty string for a question answered in words.

    >>> from kotha.course.exercises.selection import QuestionChoice
    >>> [answer_of(each) for each in QuestionChoice(questions="2").prepare()[:2]]
    ['2 3', '3 3']
    """
    if question.order is not None:
        return " ".join(map(str, question.order.numbers))
    expected = question.expected
    if expected is None:
        return ""
    rows = [expected.values[at : at + expected.columns] for at in range(0, len(expected.values), expected.columns)]
    return "; ".join(" ".join(map(_spelled, row)) for row in rows)


def _spelled(value: float) -> str:
    """Write a number in full: integers as they are, small numbers with significant digits."""
    if math.isfinite(value) and value == int(value):
        return str(int(value))
    return f"{value:.6g}" if abs(value) < 1e-2 else written(value, _DECIMALS).replace("−", "-").replace("∞", "inf")


def key_dict(questions: list[Question], language: Language, answers: bool = True) -> list[dict[str, Any]]:
    """Return the questions, with the answer key if ``answers``, ready for JSON."""
    data = []
    for question in questions:
        names = {"question": question.id, "text": translate(question.text, language)}
        data.append({**names, "points": question.points, "bonus": question.bonus})
        if answers:
            data[-1] |= {
                "answer": answer_of(question) or None,
                "names": question.rubric and [each[language] for each in question.rubric.things],
                "worked": [*(translate(line, language) for line in question.worked), *question.lines],
            }
    return data
