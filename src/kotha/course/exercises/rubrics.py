"""What a good answer to each open question names, and by which words it is known; they stand in ``rubrics.json``."""

import json
from pathlib import Path
from typing import Any

from kotha.course.exercises.rubric import Misbelief, Named, Part, Rubric
from kotha.i18n.wording import Words


def _words(told: dict[str, Any]) -> Words:
    return Words(told["en"], told["bn"])


def _rubric(told: dict[str, Any]) -> Rubric:
    parts = tuple(
        Part(tuple(Named(_words(thing), tuple(thing["known_by"])) for thing in part["things"]), part["enough"])
        for part in told["parts"]
    )
    wrong = tuple(Misbelief(_words(each), tuple(each["known_by"])) for each in told["misbeliefs"])
    return Rubric(_words(told["lead"]), parts, wrong)


# By the number of the question.
RUBRICS: dict[str, Rubric] = {
    id: _rubric(told)
    for id, told in json.loads(Path(__file__).with_name("rubrics.json").read_text(encoding="utf-8")).items()
}
