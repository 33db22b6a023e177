"""A trained model put to a use of its own, from Python."""

from pathlib import Path
from typing import Any, Literal

from kotha.api import Place
from kotha.api.examples import measure_answers, measure_texts
from kotha.api.run import OnEvent, Run, origin_at
from kotha.arguments import checked
from kotha.artifacts.run_folder import RunFolder
from kotha.errors import UsageError
from kotha.finetune import examples as finetune
from kotha.finetune.classify import ClassifyTexts
from kotha.finetune.instruct import AnswerQuestions
from kotha.i18n.message import Option
from kotha.text.corpus.dialogues import read_dialogues
from kotha.text.corpus.labelled import LabelledTexts, read_labelled
from kotha.training.settings import TrainRequest


@checked()
def adapt_classify(
    data: Place | None = None,
    *,
    out: Place,
    start: Place | None = None,
    text: str | None = None,
    label: str | None = None,
    validation: Place | None = None,
    test: Place | None = None,
    held_out: float = 0.1,
    epochs: float = 8.0,
    errors: Literal["stop", "skip", "replace"] = "stop",
    resume: bool = False,
    on_event: OnEvent | None = None,
    on_remark: finetune.OnRemark | None = None,
    **settings: Any,
) -> Run:
    """Make a text classifier of a trained GPT or BERT, from a table (csv, tsv, jsonl, parquet) of texts and labels.

    ``text`` and ``label`` name its fields; left out, they are guessed. A share of each class is ``held_out`` to choose
    by and another to be measured on, unless files are given for them. ``settings`` are those of a training;
    ``lora=8`` learns a small addition to the weights instead of all of them.

    >>> run = kotha.adapt_classify("moods.csv", start="run", out="moods-again", steps=2)
    >>> sorted(run.summary)[:3]
    ['accuracy', 'baselines', 'best_step']
    >>> run.model.classify("বাহ, কী চমৎকার").label in ("ভালো", "মন্দ")
    True
    """
    folder = RunFolder(Path(out))
    heard: Any = {"on_event": on_event, "on_remark": on_remark}
    if resume:
        finetune.resume(ClassifyTexts(measure_texts), folder, settings, **heard)
        return Run(folder.path)
    if data is None or start is None:
        raise UsageError(
            "a new classifier needs data and a model to start from; or go on with {resume}",
            resume=Option("resume", True),
        )

    def read(place: Place | None, like: LabelledTexts | None = None) -> LabelledTexts | None:
        if place is None:
            return None
        fields = (text, label) if like is None else (like.text_field, like.label_field)
        return read_labelled(Path(place), *fields, errors=errors)

    examples = read(data)
    assert examples is not None
    given: Any = {"validation": read(validation, examples), "test": read(test, examples)}
    wish = TrainRequest(changes=settings)
    request = finetune.ExamplesRequest(examples, origin_at(start), held_out=held_out, epochs=epochs, wish=wish, **given)
    finetune.start(ClassifyTexts(measure_texts), request, folder, **heard)
    return Run(folder.path)


@checked()
def adapt_instruct(
    data: Place | None = None,
    *,
    out: Place,
    start: Place | None = None,
    instruction: str | None = None,
    answer: str | None = None,
    group: str | None = None,
    test: Place | None = None,
    held_out: float = 0.1,
    epochs: float = 8.0,
    errors: Literal["stop", "skip", "replace"] = "stop",
    resume: bool = False,
    on_event: OnEvent | None = None,
    on_remark: finetune.OnRemark | None = None,
    **settings: Any,
) -> Run:
    """Teach a trained GPT to answer, from instruction pairs or ``messages`` (jsonl, csv, tsv, parquet).

    ``instruction`` and ``answer`` name the fields of pairs; left out, they are guessed. Rows that share a ``group`` are
    never divided. Loss is on the answers alone. A share is ``held_out`` to choose by and another to be asked, before
    and after, unless ``test`` is a file for that. ``settings`` are those of a training; ``lora=8`` learns a small
    addition to the weights instead of all of them.

    >>> taught = kotha.adapt_instruct("pairs.jsonl", start="run", out="taught", steps=2)
    >>> taught.summary["before"]["taught"], taught.summary["taught"]
    (False, True)
    >>> taught.model.chat()
    Conversation(0 turns)
    """
    folder = RunFolder(Path(out))
    heard: Any = {"on_event": on_event, "on_remark": on_remark}
    if resume:
        finetune.resume(AnswerQuestions(measure_answers), folder, settings, **heard)
        return Run(folder.path)
    if data is None or start is None:
        raise UsageError(
            "a model that answers needs data and a model to start from; or go on with {resume}",
            resume=Option("resume", True),
        )
    how: Any = {"group": group, "errors": errors}
    dialogues = read_dialogues(Path(data), instruction, answer, **how)
    asked = None if test is None else read_dialogues(Path(test), instruction, answer, **how)
    wish = TrainRequest(changes=settings)
    request = finetune.ExamplesRequest(
        dialogues, origin_at(start), test=asked, held_out=held_out, epochs=epochs, wish=wish
    )
    finetune.start(AnswerQuestions(measure_answers), request, folder, **heard)
    return Run(folder.path)
