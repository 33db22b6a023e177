"""Fine-tune a trained model: ``finetune_classify`` and ``finetune_instruct``."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kotha.api import AnyPath
from kotha.api.examples import measure_answers, measure_texts
from kotha.api.options import setting_names
from kotha.api.progress import displayed
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


@displayed
@checked(settings=setting_names)
def finetune_classify(
    data: AnyPath | None = None,
    *,
    out: AnyPath,
    start: AnyPath | None = None,
    text: str | None = None,
    label: str | None = None,
    validation: AnyPath | None = None,
    test: AnyPath | None = None,
    held_out: float = 0.1,
    epochs: float = 8.0,
    errors: Errors = "stop",
    resume: bool = False,
    on_event: OnEvent | None = None,
    on_remark: OnRemark | None = None,
    **settings: Any,
) -> Run:
    """Fine-tune a trained GPT or BERT to classify text, given a table (csv, tsv, jsonl, parquet) of texts and labels.

    ``text`` and ``label`` name the fields (default: guessed). A ``held_out`` share of each class is used for validation
    and an equal share for testing, unless files are given for them. ``settings`` are training settings; ``lora=8``
    trains a LoRA adapter of rank 8 instead of all weights.

    >>> run = kotha.finetune_classify("moods.csv", start="run", out="moods-again", steps=2)
    >>> sorted(run.summary)[:3]
    ['accuracy', 'baselines', 'best_step']
    >>> run.model.classify("বাহ, কী চমৎকার").label in ("ভালো", "মন্দ")
    True
    """

    def read(path: Path) -> tuple[LabelledTexts, dict[str, Any]]:
        examples = read_labelled(path, text, label, errors=errors)
        fields, files = (examples.text_field, examples.label_field), {"validation": validation, "test": test}
        given = {name: Path(file) for name, file in files.items() if file is not None}
        return examples, {name: read_labelled(file, *fields, errors=errors) for name, file in given.items()}

    options: Any = {"on_event": on_event, "on_remark": on_remark, "held_out": held_out, "epochs": epochs}
    return _finetune(
        ClassifyTexts(measure_texts), None if resume else read, data, start, Path(out), settings, **options
    )


@displayed
@checked(settings=setting_names)
def finetune_instruct(
    data: AnyPath | None = None,
    *,
    out: AnyPath,
    start: AnyPath | None = None,
    instruction: str | None = None,
    answer: str | None = None,
    group: str | None = None,
    test: AnyPath | None = None,
    held_out: float = 0.1,
    epochs: float = 8.0,
    errors: Errors = "stop",
    resume: bool = False,
    on_event: OnEvent | None = None,
    on_remark: OnRemark | None = None,
    **settings: Any,
) -> Run:
    """Fine-tune a trained GPT to follow instructions, given pairs or ``messages`` (jsonl, csv, tsv, parquet).

    ``instruction`` and ``answer`` name the fields of pairs (default: guessed). Rows with the same ``group`` stay in the
    same split. The loss covers only the answers. A ``held_out`` share is used for validation and an equal share for
    testing, unless ``test`` is a file; the model is tested before and after training. ``settings`` are training
    settings; ``lora=8`` trains a LoRA adapter of rank 8 instead of all weights.

    >>> taught = kotha.finetune_instruct("pairs.jsonl", start="run", out="taught", steps=2)
    >>> taught.summary["before"]["instruction_tuned"], taught.summary["instruction_tuned"]
    (False, True)
    >>> taught.model.chat()
    Conversation(0 turns)
    """

    def read(path: Path) -> tuple[Any, dict[str, Any]]:
        files = [path] if test is None else [path, Path(test)]
        dialogues, *tests = (read_dialogues(file, instruction, answer, group=group, errors=errors) for file in files)
        return dialogues, {"test": tests[0] if tests else None}

    options: Any = {"on_event": on_event, "on_remark": on_remark, "held_out": held_out, "epochs": epochs}
    return _finetune(
        AnswerQuestions(measure_answers), None if resume else read, data, start, Path(out), settings, **options
    )


def _finetune(
    task: Any,
    read: Callable[[Path], tuple[Any, dict[str, Any]]] | None,
    data: AnyPath | None,
    start: AnyPath | None,
    out: Path,
    settings: dict[str, Any],
    *,
    on_event: OnEvent | None,
    on_remark: OnRemark | None,
    **shares: float,
) -> Run:
    """Fine-tune a model on the examples that ``read`` returns; without ``read``, resume."""
    folder = RunFolder(out)
    if read is None:
        finetune.resume(task, folder, settings, on_event=on_event, on_remark=on_remark)
    elif data is None or start is None:
        raise UsageError("give data and a model to start from, or resume with {resume}", resume=Option("resume", True))
    else:
        examples, given = read(Path(data))
        parts: Any = {**given, **shares}
        request = finetune.ExamplesRequest(data=examples, origin=origin_at(start), changes=settings, **parts)
        finetune.start(task, request, folder, on_event=on_event, on_remark=on_remark)
    return Run(folder.path)
