"""Fine-tune a trained model as a text classifier on a table of texts and labels.

::

    RUN/classes.html  scores on the test part, with confusion matrix and baselines

The settings are those commonly used for fine-tuning: AdamW, a short warm-up, a learning rate that decays to zero,
dropout, and early stopping on the macro-F1 of the validation part.
"""

from pathlib import Path
from typing import Any

from kotha.errors import UsageError
from kotha.finetune.examples import (
    ExamplesRequest,
    ExampleTask,
    RunPlan,
    finetune_settings,
    guessed_or_named,
    numbered,
    read_columns,
)
from kotha.finetune.splits import divide
from kotha.i18n.message import Message, OnRemark, some_of
from kotha.model.config import ClassifierConfig, classifying
from kotha.text.corpus.labelled import LabelledTexts
from kotha.text.tokenizer.prompt import MarkedTexts
from kotha.training.tasks.classification import TextClasses

PAGE = "classes.html"
_USUAL: dict[str, Any] = {"batch_size": 32, "dropout": 0.1}
_WARMUP = 0.1


class ClassifyTexts(ExampleTask):
    """Text classification."""

    learns = TextClasses
    names = ("text", "label")
    called = ("{n} example", "{n:,} examples")
    too_long = (
        "{n} text is too long to be read in full; the model reads evenly spaced excerpts from it",
        "{n:,} texts are too long to be read in full; the model reads evenly spaced excerpts from them",
    )

    def plan(self, request: ExamplesRequest, say: OnRemark) -> RunPlan:
        origin, data = request.origin, request.data
        assert origin is not None, "a text classifier starts from a trained model"
        tokenizer = origin.bundle.tokenizer
        if tokenizer is None:
            raise UsageError(
                "{name} has no tokenizer, so it cannot read text; save the model with its tokenizer", name=origin.name
            )
        parts = divide(data, request.validation, request.test, share=request.held_out, seed=request.seed)
        labels = tuple(sorted(set(parts.train.labels)))
        say(
            Message(
                "text: {text!r}, label: {label!r} ({how}); classes: {classes}",
                text=data.text_field,
                label=data.label_field,
                how=guessed_or_named(data.guessed),
                classes=some_of(labels),
            )
        )
        self.say_parts(parts, say)
        model = classifying(origin.bundle.config, labels)
        reader = MarkedTexts(tokenizer, model.marks, model.context_length)
        train, validation = (reader.encode(part.texts) for part in parts.used_in_training)
        longest = max(len(stretch) for stretches in (*train, *validation) for stretch in stretches)
        # An epoch includes all excerpts of each text.
        n_stretches = sum(map(len, train))
        settings = finetune_settings(model, request, _USUAL, n_stretches, longest, _WARMUP)
        fields = {"text": data.text_field, "label": data.label_field, "guessed": data.guessed}
        return RunPlan(*settings, parts, tokenizer, {"fields": fields})

    def task(self, plan: RunPlan) -> TextClasses:
        assert isinstance(plan.model, ClassifierConfig) and plan.tokenizer is not None
        train, validation = (
            (part.texts, numbered(part.labels, plan.model.labels)) for part in plan.parts.used_in_training
        )
        return TextClasses(plan.model, plan.config, *train, *validation, plan.tokenizer)

    def read_part(self, file: Path, about: dict[str, Any]) -> LabelledTexts:
        texts, labels = read_columns(file, self.names)
        return LabelledTexts(texts, labels)
