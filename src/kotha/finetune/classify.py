"""A text classifier out of a trained model: from a table of texts and labels to a run folder.

::

    RUN/best/        the classifier, a model folder as any other
    RUN/classes.html the held-out part: scores, confusion matrix, baselines

The rest is a run from examples (``examples.py``). Settings are those usual for fine-tuning: AdamW, a short warm-up, a
rate that falls to nothing, dropout, and an end once macro-F1 on the validation part has stopped rising (early
stopping).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kotha.artifacts.model_folder import Bundle
from kotha.artifacts.run_folder import RunFolder
from kotha.errors import CheckpointError, UsageError
from kotha.evaluation.classes_page import classes_page
from kotha.evaluation.classification import ClassificationScore, evaluate_classifier
from kotha.finetune import examples
from kotha.finetune.examples import PARTS, OnRemark
from kotha.finetune.splits import Splits, divide
from kotha.i18n.wording import counted, some_of
from kotha.model.config import ClassifierConfig, classifying
from kotha.storage.atomic import write_whole
from kotha.text.corpus.labelled import LabelledTexts
from kotha.text.tokenizer.prompt import MarkedTexts
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.config import TrainConfig
from kotha.training.loop import OnEvent, Training
from kotha.training.origin import Origin
from kotha.training.tasks.classification import TextClasses

PAGE = "classes.html"
_NAMES = ("text", "label")
# Looks at the validation part in each pass over the examples, and how many without gain end the run.
_LOOKS, _PATIENCE = 2, 6
_USUAL: dict[str, Any] = {
    "optimizer": "adamw",
    "batch_size": 32,
    "weight_decay": 0.01,
    "beta2": 0.98,
    "schedule": "cosine",
    "floor": 0.0,
    "dropout": 0.1,
    "best_by": "macro_f1",
    "patience": _PATIENCE,
    "keep_checkpoints": 1,
    "spike": None,
    "compile": "off",  # batches change their shape from step to step, and each new one would be compiled
}
# The learning rate falls with the width: what was best for a small model and for one of 512 (docs/experiments.md), and
# what BERT's authors use at its size. Few numbers learn by LoRA, so they may go further.
_RATE, _RATE_WIDTH, _RATE_POWER, _LARGEST_RATE, _LORA_TIMES = 3e-3, 96, 2.2, 1e-2, 3
_WARMUP = 0.1


@dataclass(frozen=True)
class ClassifyRequest:
    """What was asked for; all the rest is chosen."""

    validation: LabelledTexts | None = None  # examples to choose by; None: a share of the data
    test: LabelledTexts | None = None  # examples to be measured on; None: a share of the data
    held_out: float = 0.1  # that share
    epochs: float = 8.0  # passes over the examples, at most
    changes: dict[str, Any] = field(default_factory=dict)  # settings of the training, by name


def start_classifier(
    data: LabelledTexts,
    origin: Origin,
    folder: RunFolder,
    request: ClassifyRequest | None = None,
    *,
    on_event: OnEvent | None = None,
    on_remark: OnRemark | None = None,
) -> dict[str, Any]:
    """Make a classifier of a trained model; returns the summary, with the scores on the held-out part."""
    request, say = request or ClassifyRequest(), on_remark or (lambda _: None)
    tokenizer = origin.bundle.tokenizer
    if tokenizer is None:
        raise UsageError(f"{origin.name} has no tokenizer, so it cannot read text; save them together")
    folder.check_new()
    splits = divide(
        data, request.validation, request.test, share=request.held_out, seed=int(request.changes.get("seed", 0))
    )
    how = "guessed" if data.guessed else "as named"
    say(f"text: {data.text_field!r}, label: {data.label_field!r} ({how}); classes: {some_of(splits.labels)}")
    for remark in splits.remarks:
        say(remark)
    sizes = (f"{counted(len(getattr(splits, part)), 'example')} for {part}" for part in PARTS)
    say(", ".join(sizes))
    model, config = _settings(origin, splits, tokenizer, request)
    training = _training(model, config, splits, tokenizer, folder, on_event, fill=lambda made: origin.fill(made, None))
    rows = {part: _rows(getattr(splits, part)) for part in PARTS}
    fields = {"text": data.text_field, "label": data.label_field, "guessed": data.guessed}
    try:
        examples.begin(training, model, tokenizer, _NAMES, rows, origin=origin.name, fields=fields)
        return _finish(training, splits, folder, say)
    finally:
        folder.release()


def resume_classifier(
    folder: RunFolder, changes: dict[str, Any], *, on_event: OnEvent | None = None, on_remark: OnRemark | None = None
) -> dict[str, Any]:
    """Go on with a run that was stopped, from its last checkpoint."""
    say = on_remark or (lambda _: None)
    folder.claim()
    try:
        model, config = examples.settings_of(folder, changes)
        if not isinstance(model, ClassifierConfig):
            said = f"{folder.path} holds a run of a {model.family}, and no classifier's; go on with train"
            raise CheckpointError(said)
        splits = read_examples(folder.path)
        training = _training(model, config, splits, Tokenizer.load(folder.path), folder, on_event)
        examples.go_on(training, changes, say)
        return _finish(training, splits, folder, say)
    finally:
        folder.release()


def read_examples(run: Path) -> Splits:
    """The examples that a run learned from, chose by and was measured on."""
    parts = examples.read_rows(run, _NAMES)
    train, validation, test = (
        LabelledTexts(tuple(text for text, _ in rows), tuple(label for _, label in rows)) for rows in parts
    )
    return Splits(train, validation, test)


# -- the parts of a run -----------------------------------------------------------------------------------------------


def _settings(
    origin: Origin, splits: Splits, tokenizer: Tokenizer, request: ClassifyRequest
) -> tuple[ClassifierConfig, TrainConfig]:
    model = classifying(origin.bundle.config, splits.labels)
    if not 0 < request.epochs <= 1000:
        raise UsageError(f"epochs={request.epochs} must be above 0, and at most 1,000")
    given = dict(request.changes)
    rate = learning_rate(model.d_model, lora=given.get("lora") is not None)
    config = TrainConfig().change(**{**_USUAL, "learning_rate": rate, **given})
    reader = MarkedTexts(tokenizer, model.marks, model.context_length)
    learned, chosen = (reader.encode(part.texts) for part in (splits.train, splits.validation))
    # A pass has read every text whole, however many stretches it takes.
    per_pass = -(-sum(map(len, learned)) // config.batch_size)
    steps = config.steps if "steps" in given else max(1, round(request.epochs * per_pass))
    pace = {"steps": steps, "warmup_steps": round(_WARMUP * steps), "evaluate_every": max(1, per_pass // _LOOKS)}
    pace["context_length"] = max(len(stretch) for stretches in (*learned, *chosen) for stretch in stretches)
    config = config.change(**{name: value for name, value in pace.items() if name not in given})
    if config.dropout is not None:
        changed = model.replace(dropout=config.dropout)
        assert isinstance(changed, ClassifierConfig)
        model = changed
    return model, config


def learning_rate(d_model: int, lora: bool = False) -> float:
    """The largest learning rate for a width.

    >>> [round(learning_rate(width), 6) for width in (96, 512, 768)]
    [0.003, 7.5e-05, 3.1e-05]
    """
    rate: float = _RATE * (_RATE_WIDTH / d_model) ** _RATE_POWER
    return min(_LARGEST_RATE, rate * (_LORA_TIMES if lora else 1))


def _training(
    model: ClassifierConfig,
    config: TrainConfig,
    splits: Splits,
    tokenizer: Tokenizer,
    folder: RunFolder,
    on_event: OnEvent | None,
    fill: Callable[[Any], Any] | None = None,
) -> Training:
    number = {label: place for place, label in enumerate(model.labels)}
    learned, chosen = (
        (part.texts, [number[label] for label in part.labels]) for part in (splits.train, splits.validation)
    )
    task = TextClasses(model, config, *learned, *chosen, tokenizer)
    return examples.training_of(model, config, task, folder, tokenizer, on_event=on_event, fill=fill)


def _finish(training: Training, splits: Splits, folder: RunFolder, say: OnRemark) -> dict[str, Any]:
    """Train to the end; then, and only then, look at the held-out part."""
    if isinstance(training.task, TextClasses) and training.task.truncated:
        texts = counted(training.task.truncated, "text")
        say(f"{texts} too long to be read whole; they are read in stretches that lie apart")

    def measure(best: Bundle) -> dict[str, Any]:
        score = evaluate_classifier(best, splits.test, splits.train)
        if len(score.baselines) < 2:
            say("no TF-IDF to compare with: it needs scikit-learn (pip install 'kotha[baselines]')")
        write_page(folder.path, score)
        return score.to_dict()

    return examples.finish(training, measure, say)


def write_page(run: Path, score: ClassificationScore) -> Path:
    """Write the page of the held-out part into a run folder, and say where it is."""
    lead = f"Measured on {counted(score.examples, 'text')} that were kept out of training and out of every choice."
    write_whole(run / PAGE, classes_page(score, f"{run.name}: {len(score.labels):,} classes", lead))
    return run / PAGE


def _rows(some: LabelledTexts) -> list[tuple[str, str]]:
    return list(zip(some.texts, some.labels, strict=True))
