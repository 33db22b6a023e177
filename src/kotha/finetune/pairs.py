"""A translator out of a table of texts and their translations.

::

    RUN/translations.html  the held-out part: BLEU and chrF++ with their signatures, and what it wrote

Both languages share one tokenizer, which is trained on both sides of the pairs to learn from where none is given. It
begins from chance, or from the weights of another translator.

Settings are those of the first transformer (https://arxiv.org/abs/1706.03762) but for the schedule, which falls to
nothing at the last step; ``schedule="inverse-sqrt"`` is the paper's. It ends where the validation loss has stopped
falling (early stopping).
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
    training_settings,
    wished_model,
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
# Passes over the pairs where nobody says how long.
_PASSES, _WARMUP = 10, 4000
_USUAL: dict[str, Any] = {
    **USUAL_TEXTS,
    **{"batch_size": 64, "label_smoothing": 0.1, "dropout": 0.1, "warmup_steps": _WARMUP},
}


class TranslatePairs(ExampleTask):
    """Texts and their translations, for a translator."""

    learns = Translation
    names = ("source", "target")
    called = ("{n} pair", "{n:,} pairs")
    too_long = (
        "{n} pair with {most} or more tokens on one side skipped",
        "{n:,} pairs with {most} or more tokens on one side skipped",
    )
    by_minutes = True

    def plan(self, request: ExamplesRequest, say: OnRemark) -> RunPlan:
        wished = wished_model(request, Seq2SeqConfig, USUAL_PRESET, Message("pairs of texts"))
        origin, data = request.origin, request.data
        parts = divide(data, request.validation, request.test, share=request.held_out, seed=request.seed)
        fields: Any = {"source": data.source_field, "target": data.target_field}
        say(Message("from {source!r} to {target!r} ({how})", **fields, how=guessed_or_named(data.guessed)))
        self.say_parts(parts, say)
        tokenizer = request.tokenizer or (None if origin is None else origin.bundle.tokenizer)
        if tokenizer is None:
            say(Message("training a tokenizer for both languages …"))
            tokenizer = train_tokenizer((*parts.train.sources, *parts.train.targets), vocab_size=wished.vocab_size)
            say(Message("one tokenizer for both languages, {n:,} tokens", n=tokenizer.vocab_size))
        learned, chosen = (_encode(part, tokenizer) for part in parts.learned)
        settings = _settings(wished, tokenizer, (learned, chosen), request, say)
        about = {"fields": {**fields, "guessed": data.guessed}}
        return RunPlan(*settings, parts, tokenizer, about)

    def task(self, plan: RunPlan) -> Translation:
        assert isinstance(plan.model, Seq2SeqConfig) and plan.tokenizer is not None
        learned, chosen = (_encode(part, plan.tokenizer) for part in plan.parts.learned)
        return Translation(plan.model, plan.config, learned, chosen, plan.tokenizer)

    def sampler(self, plan: RunPlan) -> Sampler:
        shown, tokenizer = plan.parts.validation.sources[0], plan.tokenizer
        assert tokenizer is not None
        return lambda made: f"{shown} → {translate(made, tokenizer, [shown], beams=1)[0]}"

    def read_part(self, file: Path, about: dict[str, Any]) -> TextPairs:
        fields = mapping(about, "fields")
        sources, targets = read_columns(file, self.names)
        return TextPairs(sources, targets, words(fields, "source") or "source", words(fields, "target") or "target")


def fields_like(run: Path | None, table: Path) -> tuple[str | None, str | None]:
    """The fields that a run learned from, where a table has both of them; nothing to go by where it has not."""
    learned = {} if run is None else mapping(run_config(run), "fields")
    fields = words(learned, "source"), words(learned, "target")
    known = field_names(table) if None not in fields else []
    return fields if all(field in known for field in fields) else (None, None)


def learning_rate(d_model: int) -> float:
    """The largest learning rate for a width: that of 2017, where its 4,000 steps of warm-up end.

    >>> [round(learning_rate(width), 6) for width in (192, 512, 1024)]
    [0.001141, 0.000699, 0.000494]
    """
    return float((d_model * _WARMUP) ** -0.5)


def _settings(
    wished: Seq2SeqConfig,
    tokenizer: Tokenizer,
    encoded: tuple[list[TextPair], list[TextPair]],
    request: ExamplesRequest,
    say: OnRemark,
) -> tuple[ModelConfig, TrainConfig]:
    """The model with the tokenizer's words, and how it is trained."""
    origin, model = request.origin, wished
    if origin is None or request.tokenizer is not None:
        model = model.replace(vocab_size=tokenizer.vocab_size)
    # The longer side of each pair that a context holds, with its mark.
    longer = (1 + max(len(source), len(target)) for source, target in (*encoded[0], *encoded[1]))
    lengths = [length for length in longer if length <= wished.context_length] or [wished.context_length]
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
