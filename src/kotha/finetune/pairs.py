"""A translator out of a table of pairs: from texts and their translations to a run folder.

::

    RUN/best/               the translator, a model folder as any other
    RUN/translations.html   the held-out part: BLEU and chrF++ with their signatures, and what it wrote

The rest is a run from examples (``examples.py``). Both languages share one tokenizer, which is trained on both sides of
the pairs to learn from where none is given. It begins from chance, or from the weights of another translator.

Settings are those of the first transformer (https://arxiv.org/abs/1706.03762) but for the schedule, which falls to
nothing at the last step; ``schedule="inverse-sqrt"`` is the paper's. It ends where the validation loss has stopped
falling (early stopping).
"""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kotha.artifacts.model_folder import Bundle
from kotha.artifacts.run_folder import RunFolder, mapping, run_config, words
from kotha.errors import CheckpointError, ConfigError
from kotha.evaluation.translation import can_score, evaluate_pairs
from kotha.evaluation.translation_page import translations_page
from kotha.finetune import examples
from kotha.finetune.examples import PARTS, OnRemark
from kotha.finetune.splits import Parts, divide_pairs
from kotha.generation.translating import translate
from kotha.i18n.wording import counted
from kotha.model.config import ModelConfig, Seq2SeqConfig
from kotha.model.presets import preset
from kotha.storage.atomic import write_whole
from kotha.text.corpus.documents import field_names
from kotha.text.corpus.pairs import TextPairs
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.trainers import train as train_tokenizer
from kotha.training.config import TrainConfig
from kotha.training.loop import OnEvent, Training
from kotha.training.origin import Origin
from kotha.training.plan.rules import pace_of, warmed_in_time
from kotha.training.recipes import recipe
from kotha.training.settings import USUAL_MINUTES, TrainRequest, check_lora, check_settings, fit_to_minutes, take_sizes
from kotha.training.tasks.translation import TextPair, Translation

PAGE = "translations.html"
USUAL_PRESET = "pocket-seq2seq"
_NAMES = ("source", "target")
# Passes over the pairs where nobody says how long, and how many looks without gain end the run.
_PASSES, _PATIENCE = 10, 6
_WARMUP = 4000
_USUAL: dict[str, Any] = {
    "optimizer": "adamw",
    "batch_size": 64,
    "weight_decay": 0.01,
    "beta2": 0.98,
    "label_smoothing": 0.1,
    "dropout": 0.1,
    "schedule": "cosine",
    "floor": 0.0,
    "warmup_steps": _WARMUP,
    "patience": _PATIENCE,
    "keep_checkpoints": 1,
    "spike": None,
    "compile": "off",  # batches change their shape from step to step, and each new one would be compiled
}


@dataclass(frozen=True)
class PairsRequest:
    """What was asked for; all the rest is chosen."""

    validation: TextPairs | None = None  # pairs to choose by; None: a share of the data
    test: TextPairs | None = None  # pairs to be measured on; None: a share of the data
    held_out: float = 0.05  # that share
    tokenizer: Tokenizer | None = None  # for both languages; None: the one of the weights, or a new one
    recipe: str | None = None  # settings by name; None: those that are usual for pairs
    wish: TrainRequest = field(default_factory=TrainRequest)  # preset, minutes, settings and sizes


def start_translator(
    data: TextPairs,
    folder: RunFolder,
    request: PairsRequest | None = None,
    *,
    origin: Origin | None = None,
    on_event: OnEvent | None = None,
    on_remark: OnRemark | None = None,
) -> dict[str, Any]:
    """Make a translator; returns the summary, with the scores on the held-out part."""
    request, say, began = request or PairsRequest(), on_remark or (lambda _: None), time.perf_counter()
    wished = _wished_model(request.wish, origin)
    folder.check_new()
    seed = int(request.wish.changes.get("seed", 0))
    parts = divide_pairs(data, request.validation, request.test, share=request.held_out, seed=seed)
    how = "guessed" if data.guessed else "as named"
    say(f"from {data.source_field!r} to {data.target_field!r} ({how})")
    for remark in parts.remarks:
        say(remark)
    say(", ".join(f"{counted(len(getattr(parts, part)), 'pair')} for {part}" for part in PARTS))
    tokenizer = request.tokenizer or (None if origin is None else origin.bundle.tokenizer)
    if tokenizer is None:
        say("training a tokenizer for both languages …")
        tokenizer = train_tokenizer((*parts.train.sources, *parts.train.targets), vocab_size=wished.vocab_size)
        say(f"one tokenizer for both languages, {counted(tokenizer.vocab_size, 'piece')}")
    encoded = _Encoded.of(parts, tokenizer)
    model, config = _settings(wished, tokenizer, encoded, request, origin, say)
    if origin is not None:
        origin.check(model, tokenizer)
    fill = None if origin is None else lambda made: origin.fill(made, tokenizer)
    training = _training(model, config, parts, encoded, tokenizer, folder, on_event, fill)
    if request.wish.timed:
        training.deadline = began + 60 * (request.wish.minutes or USUAL_MINUTES)
    rows = {part: _rows(getattr(parts, part)) for part in PARTS}
    about: dict[str, Any] = {
        "fields": {"source": data.source_field, "target": data.target_field, "guessed": data.guessed}
    }
    if origin is not None:
        about["origin"] = origin.name
    try:
        examples.begin(training, model, tokenizer, _NAMES, rows, **about)
        return _finish(training, parts, folder, say)
    finally:
        folder.release()


def resume_translator(
    folder: RunFolder, changes: dict[str, Any], *, on_event: OnEvent | None = None, on_remark: OnRemark | None = None
) -> dict[str, Any]:
    """Go on with a run that was stopped, from its last checkpoint."""
    say = on_remark or (lambda _: None)
    folder.claim()
    try:
        model, config = examples.settings_of(folder, changes)
        if not isinstance(model, Seq2SeqConfig):
            said = (
                f"{folder.path} holds a run of a {model.family}, which learned from no pairs; go on with its own data"
            )
            raise CheckpointError(said)
        parts, tokenizer = read_parts(folder.path), Tokenizer.load(folder.path)
        training = _training(model, config, parts, _Encoded.of(parts, tokenizer), tokenizer, folder, on_event)
        examples.go_on(training, changes, say)
        return _finish(training, parts, folder, say)
    finally:
        folder.release()


def read_parts(run: Path) -> Parts[TextPairs]:
    """The pairs that a run learned from, chose by and was measured on."""
    fields = mapping(RunFolder(run).about(), "fields")
    names = words(fields, "source") or "source", words(fields, "target") or "target"
    train, validation, test = (
        TextPairs(tuple(source for source, _ in rows), tuple(target for _, target in rows), *names)
        for rows in examples.read_rows(run, _NAMES)
    )
    return Parts(train, validation, test)


def fields_like(run: Path | None, table: Path) -> tuple[str | None, str | None]:
    """The fields that a run learned from, where a table has both of them; nothing to go by where it has not."""
    learned = {} if run is None else mapping(run_config(run), "fields")
    fields = words(learned, "source"), words(learned, "target")
    known = field_names(table) if None not in fields else []
    return fields if all(field in known for field in fields) else (None, None)


# -- the parts of a run -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Encoded:
    """Pairs as ids: to learn from, and to choose by."""

    train: list[TextPair]
    validation: list[TextPair]

    @classmethod
    def of(cls, parts: Parts[TextPairs], tokenizer: Tokenizer) -> "_Encoded":
        def encode(pairs: TextPairs) -> list[TextPair]:
            sources, targets = (tokenizer.encode_batch(list(texts)) for texts in (pairs.sources, pairs.targets))
            return list(zip(sources, targets, strict=True))

        return cls(encode(parts.train), encode(parts.validation))

    def lengths(self, most: int) -> list[int]:
        """The longer side of each pair that a context holds, with its mark."""
        longer = (1 + max(len(source), len(target)) for source, target in (*self.train, *self.validation))
        return [length for length in longer if length <= most] or [most]


def _wished_model(wish: TrainRequest, origin: Origin | None) -> Seq2SeqConfig:
    """The model that was asked for: it must be one that reads a text and writes another."""
    if origin is not None and not isinstance(origin.bundle.config, Seq2SeqConfig):
        family = origin.bundle.config.family
        raise ConfigError(f"{origin.name} is a {family} model, and pairs are for one that translates (seq2seq)")
    base: ModelConfig = preset(wish.preset or USUAL_PRESET) if origin is None else origin.bundle.config
    if not isinstance(base, Seq2SeqConfig):
        raise ConfigError(
            f"preset {wish.preset!r} is a {base.family} model, and pairs are for one that translates: "
            f"use a seq2seq preset, such as {USUAL_PRESET!r}"
        )
    sizes = take_sizes(base, wish.changes)[0]
    context = wish.changes.get("context_length")
    model = sizes if context is None else sizes.replace(context_length=context)
    assert isinstance(model, Seq2SeqConfig)
    return model


def _settings(
    wished: Seq2SeqConfig,
    tokenizer: Tokenizer,
    encoded: _Encoded,
    request: PairsRequest,
    origin: Origin | None,
    say: OnRemark,
) -> tuple[ModelConfig, TrainConfig]:
    """The model with the tokenizer's words, and how it is trained: for so long, or for so many passes."""
    wish, given = request.wish, take_sizes(wished, request.wish.changes)[1]
    model: ModelConfig = wished
    if origin is None or request.tokenizer is not None:
        model = model.replace(vocab_size=tokenizer.vocab_size)
    if request.recipe is None:
        config = TrainConfig().change(**{**_USUAL, "learning_rate": learning_rate(model.d_model), **given})
    else:  # by name: to the letter
        config = recipe(request.recipe, **given)
    if config.dropout is not None:
        model = model.replace(dropout=config.dropout)
    check_settings(model, config)
    check_lora(config, tokenizer, "the table of pairs", origin)
    lengths = encoded.lengths(wished.context_length)
    config = config.change(context_length=max(lengths))
    if wish.timed:
        say("measuring this machine …")
        usual = max(1, round(sum(lengths) / len(lengths)))
        choice = fit_to_minutes(wish, model, config, given, usual)
        say(choice.sentence)
        return model, choice.settings
    if request.recipe is not None:
        return model, warmed_in_time(config, given)
    steps = config.steps if "steps" in given else max(1, round(_PASSES * len(encoded.train) / config.batch_size))
    pace = pace_of(steps, config.warmup_steps)
    return model, config.change(**{name: value for name, value in pace.items() if name not in given})


def learning_rate(d_model: int) -> float:
    """The largest learning rate for a width: that of 2017, where its 4,000 steps of warm-up end.

    >>> [round(learning_rate(width), 6) for width in (192, 512, 1024)]
    [0.001141, 0.000699, 0.000494]
    """
    return float((d_model * _WARMUP) ** -0.5)


def _training(
    model: ModelConfig,
    config: TrainConfig,
    parts: Parts[TextPairs],
    encoded: _Encoded,
    tokenizer: Tokenizer,
    folder: RunFolder,
    on_event: OnEvent | None,
    fill: Any = None,
) -> Training:
    task = Translation(model, config, encoded.train, tokenizer, encoded.validation)
    shown = parts.validation.sources[0]

    def sample(made: Any) -> str:
        return f"{shown} → {translate(made, tokenizer, [shown], beams=1)[0]}"

    return examples.training_of(model, config, task, folder, tokenizer, on_event=on_event, sampler=sample, fill=fill)


def _finish(training: Training, parts: Parts[TextPairs], folder: RunFolder, say: OnRemark) -> dict[str, Any]:
    """Train to the end; then, and only then, translate the held-out part."""
    task = training.task
    assert isinstance(task, Translation)
    if task.left_out:
        say(f"{counted(task.left_out, 'pair')} longer than {task.context_length - 1} tokens on a side were left out")

    def measure(best: Bundle) -> dict[str, Any]:
        if not can_score():
            say("no BLEU and no chrF++: they need sacrebleu (pip install 'kotha[scores]')")
            return {}
        score = evaluate_pairs(best, parts.test, parts.train)
        lead = f"{counted(score.sentences, 'pair')} that were kept out of training and out of every choice."
        write_whole(folder.path / PAGE, translations_page(score, parts.test, f"{folder.path.name}: translations", lead))
        return score.to_dict()

    return examples.finish(training, measure, say)


def _rows(pairs: TextPairs) -> list[tuple[str, str]]:
    return list(zip(pairs.sources, pairs.targets, strict=True))
