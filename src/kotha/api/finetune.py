"""A trained model put to a use of its own, from Python."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kotha.api import Place
from kotha.api.examples import measure_answers, measure_texts
from kotha.api.run import OnEvent, Run, origin_at
from kotha.arguments import checked
from kotha.artifacts.run_folder import RunFolder
from kotha.errors import UsageError
from kotha.finetune import examples as finetune
from kotha.finetune.classify import ClassifyTexts
from kotha.finetune.instruct import AnswerQuestions
from kotha.i18n.message import OnRemark, Option
from kotha.text.choices import Errors
from kotha.text.corpus.dialogues import read_dialogues
from kotha.text.corpus.labelled import LabelledTexts, read_labelled


@checked()
def finetune_classify(
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
    errors: Errors = "stop",
    resume: bool = False,
    on_event: OnEvent | None = None,
    on_remark: OnRemark | None = None,
    **settings: Any,
) -> Run:
    """Make a text classifier of a trained GPT or BERT, from a table (csv, tsv, jsonl, parquet) of texts and labels.

    ``text`` and ``label`` name its fields; left out, they are guessed. A share of each class is ``held_out`` to choose
    by and another to be measured on, unless files are given for them. ``settings`` are those of a training;
    ``lora=8`` learns a small addition to the weights instead of all of them.

    >>> run = kotha.finetune_classify("moods.csv", start="run", out="moods-again", steps=2)
    >>> sorted(run.summary)[:3]
    ['accuracy', 'baselines', 'best_step']
    >>> run.model.classify("বাহ, কী চমৎকার").label in ("ভালো", "মন্দ")
    True
    """

    def read(place: Path) -> tuple[LabelledTexts, dict[str, Any]]:
        examples = read_labelled(place, text, label, errors=errors)
        fields, files = (examples.text_field, examples.label_field), {"validation": validation, "test": test}
        given = {name: Path(file) for name, file in files.items() if file is not None}
        return examples, {name: read_labelled(file, *fields, errors=errors) for name, file in given.items()}

    how: Any = {"on_event": on_event, "on_remark": on_remark, "held_out": held_out, "epochs": epochs}
    return _finetune(ClassifyTexts(measure_texts), None if resume else read, data, start, Path(out), settings, **how)


@checked()
def finetune_instruct(
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
    errors: Errors = "stop",
    resume: bool = False,
    on_event: OnEvent | None = None,
    on_remark: OnRemark | None = None,
    **settings: Any,
) -> Run:
    """Teach a trained GPT to answer, from instruction pairs or ``messages`` (jsonl, csv, tsv, parquet).

    ``instruction`` and ``answer`` name the fields of pairs; left out, they are guessed. Rows that share a ``group`` are
    never divided. Loss is on the answers alone. A share is ``held_out`` to choose by and another to be asked, before
    and after, unless ``test`` is a file for that. ``settings`` are those of a training; ``lora=8`` learns a small
    addition to the weights instead of all of them.

    >>> taught = kotha.finetune_instruct("pairs.jsonl", start="run", out="taught", steps=2)
    >>> taught.summary["before"]["taught"], taught.summary["taught"]
    (False, True)
    >>> taught.model.chat()
    Conversation(0 turns)
    """

    def read(place: Path) -> tuple[Any, dict[str, Any]]:
        files = [place] if test is None else [place, Path(test)]
        dialogues, *asked = (read_dialogues(file, instruction, answer, group=group, errors=errors) for file in files)
        return dialogues, {"test": asked[0] if asked else None}

    how: Any = {"on_event": on_event, "on_remark": on_remark, "held_out": held_out, "epochs": epochs}
    return _finetune(
        AnswerQuestions(measure_answers), None if resume else read, data, start, Path(out), settings, **how
    )


def _finetune(
    task: Any,
    read: Callable[[Path], tuple[Any, dict[str, Any]]] | None,
    data: Place | None,
    start: Place | None,
    out: Path,
    settings: dict[str, Any],
    *,
    on_event: OnEvent | None,
    on_remark: OnRemark | None,
    **shares: float,
) -> Run:
    """Put a model to a task: from what is read, or without ``read`` go on."""
    folder = RunFolder(out)
    if read is None:
        finetune.resume(task, folder, settings, on_event=on_event, on_remark=on_remark)
    elif data is None or start is None:
        raise UsageError("give data and a model to start from, or resume with {resume}", resume=Option("resume", True))
    else:
        examples, given = read(Path(data))
        how: Any = {**given, **shares}
        request = finetune.ExamplesRequest(data=examples, origin=origin_at(start), changes=settings, **how)
        finetune.start(task, request, folder, on_event=on_event, on_remark=on_remark)
    return Run(folder.path)
