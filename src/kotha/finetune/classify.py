"""A text classifier out of a trained model, from a table of texts and labels.

::

    RUN/classes.html  the held-out part: scores, confusion matrix, baselines

Settings are those usual for fine-tuning: AdamW, a short warm-up, a rate that falls to nothing, dropout, and an end once
macro-F1 on the validation part has stopped rising (early stopping).
"""

from pathlib import Path
from typing import Any

from kotha.artifacts.model_folder import Bundle
from kotha.artifacts.run_folder import RunFolder
from kotha.errors import UsageError
from kotha.evaluation.classification import ClassificationScore, classes_document, evaluate_classifier
from kotha.finetune.examples import ExamplesRequest, ExampleTask, OnRemark, Row, RunPlan, read_columns
from kotha.finetune.settings import finetune_settings
from kotha.finetune.splits import Parts, divide
from kotha.i18n.message import Message, Plural, some_of
from kotha.model.config import ClassifierConfig, ModelConfig, classifying
from kotha.storage.atomic import write_whole
from kotha.text.corpus.labelled import LabelledTexts
from kotha.text.tokenizer.prompt import MarkedTexts
from kotha.training.tasks.classification import TextClasses

PAGE = "classes.html"
_USUAL: dict[str, Any] = {"batch_size": 32, "dropout": 0.1, "best_by": "macro_f1"}
_WARMUP = 0.1


class ClassifyTexts(ExampleTask[LabelledTexts]):
    """Texts with labels, for a classifier."""

    names = ("text", "label")
    called = ("{n} example", "{n:,} examples")
    other_run = "{path} holds a run of a {family}, and no classifier's; go on with train"

    def plan(self, request: ExamplesRequest, folder: RunFolder, say: OnRemark) -> RunPlan[LabelledTexts]:
        origin, data = request.origin, request.data
        assert origin is not None, "a classifier begins from a trained model"
        tokenizer = origin.bundle.tokenizer
        if tokenizer is None:
            raise UsageError("{name} has no tokenizer, so it cannot read text; save them together", name=origin.name)
        folder.check_new()
        parts = divide(data, request.validation, request.test, share=request.held_out, seed=request.seed)
        labels = tuple(sorted(set(parts.train.labels)))
        said = Message(
            "text: {text!r}, label: {label!r} ({how}); classes: {classes}",
            text=data.text_field,
            label=data.label_field,
            how=guessed_or_named(data.guessed),
            classes=some_of(labels),
        )
        say(said)
        self.say_parts(parts, say)
        model = classifying(origin.bundle.config, labels)
        reader = MarkedTexts(tokenizer, model.marks, model.context_length)
        learned, chosen = (reader.encode(part.texts) for part in (parts.train, parts.validation))
        longest = max(len(stretch) for stretches in (*learned, *chosen) for stretch in stretches)
        # A pass has read every text whole, however many stretches it takes.
        n_stretches = sum(map(len, learned))
        return RunPlan(*finetune_settings(model, request, _USUAL, n_stretches, longest, _WARMUP), parts, tokenizer)

    def about(self, request: ExamplesRequest, parts: Parts[LabelledTexts], say: OnRemark) -> dict[str, Any]:
        data = request.data
        fields = {"text": data.text_field, "label": data.label_field, "guessed": data.guessed}
        return {**super().about(request, parts, say), "fields": fields}

    def task(self, plan: RunPlan[LabelledTexts]) -> tuple[TextClasses, Message | None]:
        assert isinstance(plan.model, ClassifierConfig) and plan.tokenizer is not None
        number = {label: place for place, label in enumerate(plan.model.labels)}
        learned, chosen = (
            (part.texts, [number[label] for label in part.labels]) for part in (plan.parts.train, plan.parts.validation)
        )
        task = TextClasses(plan.model, plan.config, *learned, *chosen, plan.tokenizer)
        if not task.truncated:
            return task, None
        return task, Plural(
            "{n} text too long to be read whole; they are read in stretches that lie apart",
            "{n:,} texts too long to be read whole; they are read in stretches that lie apart",
            n=task.truncated,
        )

    def measure(self, best: Bundle, parts: Parts[LabelledTexts], run: Path, say: OnRemark) -> dict[str, Any]:
        score = evaluate_classifier(best, parts.test, parts.train)
        if len(score.baselines) < 2:
            say(Message("no TF-IDF to compare with: it needs scikit-learn (pip install 'kotha[baselines]')"))
        lead = Plural(
            "Measured on {n} text that were kept out of training and out of every choice.",
            "Measured on {n:,} texts that were kept out of training and out of every choice.",
            n=score.examples,
        )
        write_whole(run / PAGE, classes_document(score, classes_title(run, score), lead).html())
        return score.to_dict()

    def resumes(self, model: ModelConfig, about: dict[str, Any]) -> bool:
        return isinstance(model, ClassifierConfig)

    def rows(self, part: LabelledTexts) -> list[Row]:
        return list(zip(part.texts, part.labels, strict=True))

    def read_parts(self, run: Path) -> Parts[LabelledTexts]:
        columns = read_columns(run, self.names)
        train, validation, test = (LabelledTexts(texts, labels) for texts, labels in columns)
        return Parts(train, validation, test)


def guessed_or_named(guessed: bool) -> Message:
    """Whether the fields of a table were found, or named."""
    return Message("guessed") if guessed else Message("as named")


def classes_title(run: Path, score: ClassificationScore) -> Message:
    """The title of the page of a run that learned classes."""
    return Message("{name}: {n:,} classes", name=run.name, n=len(score.labels))
