"""Train a translator on a table of pairs: texts and their translations.

::

    RUN/translations.html  BLEU and chrF++ on the test part, with their signatures and the translations

Both languages share one tokenizer; if none is given, it is trained on both sides of the training pairs. The model
starts from random weights, or from the weights of another translation model.

The settings are those of the original transformer (https://arxiv.org/abs/1706.03762) except for the schedule, which
decays to zero at the last step (``schedule="inverse-sqrt"`` selects the paper's). Training stops early if the
validation loss does not improve.
"""

from pathlib import Path
from typing import Any

from kotha.artifacts.run_folder import mapping, run_config, words
from kotha.finetune.examples import (
    USUAL_TEXTS,
    ExamplesRequest,
    ExampleTask,
    RunPlan,
    guessed_or_named,
    read_columns,
    requested_model,
    training_settings,
)
from kotha.finetune.splits import divide
from kotha.generation.beam import translate
from kotha.i18n.message import Message, OnRemark
from kotha.model.config import ModelConfig, Seq2SeqConfig
from kotha.text.corpus.documents import field_names
from kotha.text.corpus.pairs import TextPairs
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.trainers import train as train_tokenizer
from kotha.training.config import TrainConfig
from kotha.training.initial_weights import check_lora
from kotha.training.loop import Sampler
from kotha.training.tasks.examples import TextPair, Translation

PAGE = "translations.html"
USUAL_PRESET = "pocket-seq2seq"
# Number of epochs, if no duration is given.
_PASSES, _WARMUP = 10, 4000
_USUAL: dict[str, Any] = {
    **USUAL_TEXTS,
    **{"batch_size": 64, "label_smoothing": 0.1, "dropout": 0.1, "warmup_steps": _WARMUP},
}


class TranslatePairs(ExampleTask):
    """Translation."""

    learns = Translation
    names = ("source", "target")
    called = ("{n} pair", "{n:,} pairs")
    too_long = (
        "skipped {n} pair with {most} or more tokens on one side",
        "skipped {n:,} pairs with {most} or more tokens on one side",
    )
    by_minutes = True

    def plan(self, request: ExamplesRequest, say: OnRemark) -> RunPlan:
        requested = requested_model(request, Seq2SeqConfig, USUAL_PRESET, Message("pairs of texts"))
        origin, data = request.origin, request.data
        parts = divide(data, request.validation, request.test, share=request.held_out, seed=request.seed)
        fields: Any = {"source": data.source_field, "target": data.target_field}
        say(Message("from {source!r} to {target!r} ({how})", **fields, how=guessed_or_named(data.guessed)))
        self.say_parts(parts, say)
        tokenizer = request.tokenizer or (None if origin is None else origin.bundle.tokenizer)
        if tokenizer is None:
            say(Message("training a tokenizer for both languages …"))
            tokenizer = train_tokenizer((*parts.train.sources, *parts.train.targets), vocab_size=requested.vocab_size)
            say(Message("one tokenizer for both languages, {n:,} tokens", n=tokenizer.vocab_size))
        train, validation = (_encode(part, tokenizer) for part in parts.used_in_training)
        settings = _settings(requested, tokenizer, (train, validation), request, say)
        about = {"fields": {**fields, "guessed": data.guessed}}
        return RunPlan(*settings, parts, tokenizer, about)

    def task(self, plan: RunPlan) -> Translation:
        assert isinstance(plan.model, Seq2SeqConfig) and plan.tokenizer is not None
        train, validation = (_encode(part, plan.tokenizer) for part in plan.parts.used_in_training)
        return Translation(plan.model, plan.config, train, validation, plan.tokenizer)

    def sampler(self, plan: RunPlan) -> Sampler:
        shown, tokenizer = plan.parts.validation.sources[0], plan.tokenizer
        assert tokenizer is not None
        return lambda made: f"{shown} → {translate(made, tokenizer, [shown], beams=1)[0]}"

    def read_part(self, file: Path, about: dict[str, Any]) -> TextPairs:
        fields = mapping(about, "fields")
        sources, targets = read_columns(file, self.names)
        return TextPairs(sources, targets, words(fields, "source") or "source", words(fields, "target") or "target")


def fields_like(run: Path | None, table: Path) -> tuple[str | None, str | None]:
    """Return the source and target fields of a run if a table has both, otherwise (None, None)."""
    fields_of_run = {} if run is None else mapping(run_config(run), "fields")
    fields = words(fields_of_run, "source"), words(fields_of_run, "target")
    known = field_names(table) if None not in fields else []
    return fields if all(field in known for field in fields) else (None, None)


def learning_rate(d_model: int) -> float:
    """Return the peak learning rate for a model width: the original transformer's rate after 4,000 warm-up steps.

    >>> [round(learning_rate(width), 6) for width in (192, 512, 1024)]
    [0.001141, 0.000699, 0.000494]
    """
    return float((d_model * _WARMUP) ** -0.5)


def _settings(
    requested: Seq2SeqConfig,
    tokenizer: Tokenizer,
    encoded: tuple[list[TextPair], list[TextPair]],
    request: ExamplesRequest,
    say: OnRemark,
) -> tuple[ModelConfig, TrainConfig]:
    """Return the model with the tokenizer's vocabulary size, and its training settings."""
    origin, model = request.origin, requested
    if origin is None or request.tokenizer is not None:
        model = model.replace(vocab_size=tokenizer.vocab_size)
    # The length of the longer side of each pair that fits the context, with its end token.
    longer = (1 + max(len(source), len(target)) for source, target in (*encoded[0], *encoded[1]))
    lengths = [length for length in longer if length <= requested.context_length] or [requested.context_length]
    check_lora(request.changes.get("lora"), tokenizer, "the table of pairs", origin)
    return training_settings(
        model,
        request,
        {**_USUAL, "learning_rate": learning_rate(model.d_model)},
        say,
        tokenizer=tokenizer,
        examples_read=_PASSES * len(encoded[0]),
        usual_length=max(1, round(sum(lengths) / len(lengths))),
        context=max(lengths),
    )


def _encode(pairs: TextPairs, tokenizer: Tokenizer) -> list[TextPair]:
    sources, targets = (tokenizer.encode_batch(list(texts)) for texts in (pairs.sources, pairs.targets))
    return list(zip(sources, targets, strict=True))
