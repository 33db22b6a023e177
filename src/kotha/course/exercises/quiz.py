"""The tutor: asks, gives hints, says which mistake it was, lets one try again, and counts points.

It reads and writes through two functions, so a terminal, a pipe and a test are the same to it. An empty line passes a
question, ``?`` asks for a hint, the end of input ends the quiz. A second try counts half of what it mends. Where nobody
is there to try again (a pipe) there is one try, and an answer that cannot be read counts as it is.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from kotha.course.exercises.grading import FEWEST_DIGITS, Verdict, readings
from kotha.course.exercises.judging import Judged, judge
from kotha.course.exercises.key import explained, shown
from kotha.course.exercises.outcome import Outcome, Summary, mark
from kotha.course.exercises.questions import Question
from kotha.course.worksheet.sheet import Sheet
from kotha.i18n.catalogue import translate
from kotha.i18n.message import Message
from kotha.i18n.numbers import Language

# A line of the student's; None when there is no more.
Read = Callable[[str], str | None]
Tell = Callable[[str], None]
OnAnswer = Callable[[Outcome], None]
_ASKS_FOR_HINT = ("?", "hint", "ইঙ্গিত")

RULES = Message("An empty line passes a question over, ? asks for a hint (each takes a tenth of the points).")
_VERDICTS = {
    Verdict.RIGHT: Message("Right."),
    Verdict.PARTLY: Message("Partly right."),
    Verdict.SKIPPED: Message("Passed over."),
    Verdict.COARSE: Message("Near, but too coarse: give at least {digits} significant digits.", digits=FEWEST_DIGITS),
}


@dataclass
class Quiz:
    """Asks questions one after the other."""

    sheet: Sheet
    language: Language
    read: Read
    tell: Tell
    tries: int = 1
    on_answer: OnAnswer | None = None
    _hints: int = field(default=0, init=False)

    def ask_all(self, questions: list[Question], done: tuple[Outcome, ...] = ()) -> Summary:
        """Ask what is not ``done`` yet, until the questions or the input end; then tell the score."""
        outcomes, answered = list(done), {outcome.question for outcome in done}
        left = [question for question in questions if question.id not in answered]
        for number, question in enumerate(left):
            outcome = self._ask(question)
            if outcome is None:
                self._say(Message("The input ended; questions not asked: {left}.", left=len(left) - number))
                break
            outcomes.append(outcome)
            if self.on_answer is not None:
                self.on_answer(outcome)
        summary = Summary.of(outcomes, questions)
        self._tell_score(summary)
        return summary

    def _tell_score(self, summary: Summary) -> None:
        if not summary.outcomes:
            return
        possible = summary.possible or sum(outcome.possible for outcome in summary.outcomes)
        self._say(
            Message(
                "{points} of {possible} points ({percent:.0f}%); {right} of {asked} answers wholly right.",
                points=_number(summary.points),
                possible=possible,
                percent=100 * summary.points / possible,
                right=summary.right,
                asked=len(summary.outcomes),
            )
        )
        if summary.bonus:
            self._say(Message("{bonus} of the points are a bonus.", bonus=_number(summary.bonus)))

    def _ask(self, question: Question) -> Outcome | None:
        worth = Message("{points} points", points=question.points)
        if question.bonus:
            worth = Message("{points} bonus points", points=question.points)
        self.tell(f"\n{question.id}. {translate(question.text, self.language)} [{translate(worth, self.language)}]")
        for line in shown(question, self.sheet, self.language):
            self.tell(line)
        self._hints = 0
        tries: list[str] = []
        excused = self.tries == 1  # an answer that cannot be read is asked for once more, where somebody is there
        while True:
            typed = self._answer(question)
            if typed is None:
                return self._done(question, tries) if tries else None
            judged = judge(question, typed, self.sheet)
            if judged.verdict is Verdict.UNREADABLE and not excused:
                excused = True
                self._say(*judged.said)
                continue
            tries.append(typed)
            if judged.credit == 1 or judged.verdict is Verdict.SKIPPED or len(tries) >= self.tries:
                return self._done(question, tries)
            self._react(judged)
            self._say(Message("Try once more; what is mended now counts half."))

    def _answer(self, question: Question) -> str | None:
        """A whole answer; requests for hints are answered on the way."""
        while True:
            typed = self.read("> ")
            if typed is None:
                return None
            if typed.strip().lower() in _ASKS_FOR_HINT:
                self._give_hint(question)
                continue
            return self._rest_of_matrix(question, typed).strip()

    def _give_hint(self, question: Question) -> None:
        if self._hints >= len(question.hints):
            self._say(Message("There are no more hints."))
            return
        self._say(Message("Hint: {hint}", hint=question.hints[self._hints]))
        self._hints += 1

    def _rest_of_matrix(self, question: Question, typed: str) -> str:
        """A matrix may be typed in one line or row by row: after one whole row, read the others."""
        expected = question.expected
        if expected is None or expected.rows == 1 or expected.columns == 1:
            return typed
        if len(readings(typed)[-1]) != expected.columns:
            return typed
        lines = [typed]
        while len(lines) < expected.rows:
            line = self.read(f"{len(lines) + 1}> ")
            if line is None or not line.strip():
                break
            lines.append(line)
        return " ; ".join(line.strip() for line in lines)

    def _react(self, judged: Judged) -> None:
        self._say(_VERDICTS.get(judged.verdict, Message("Not right.")), *judged.said)

    def _done(self, question: Question, tries: list[str]) -> Outcome:
        """Say how it went, and explain what was not right."""
        outcome = mark(question, tuple(tries), self._hints, self.sheet, self.language)
        last = judge(question, tries[-1], self.sheet)
        self._react(last)
        if last.credit < 1 or question.rubric is not None:
            for line in explained(question, last, self.language):
                self.tell(line)
        if outcome.points < question.points:
            got = _number(outcome.points)
            self._say(Message("{got} of {points} points.", got=got, points=question.points))
        return outcome

    def _say(self, *messages: Message) -> None:
        for each in messages:
            self.tell(translate(each, self.language))


def _number(points: float) -> float | int:
    """Points without a decimal that says nothing."""
    return int(points) if points == int(points) else points
