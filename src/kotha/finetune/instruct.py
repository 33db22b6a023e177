"""A model that answers out of a trained GPT (instruction tuning): from a file of conversations to a run folder.

::

    RUN/best/        the model with its chat template, a model folder as any other

The rest is a run from examples (``examples.py``). Loss is on the answers alone (``training/tasks/answers.py``). A part
of the conversations is held out, by what they belong to: questions about one story are all learned from or all unseen.
What share of those is answered right is measured twice, before the first step and with the best model. A tokenizer
that has no marks for turns gets them, and the model a row for each.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kotha.artifacts.model_folder import Bundle
from kotha.artifacts.run_folder import RunFolder
from kotha.errors import CheckpointError, ConfigError, DataError, KothaError, UsageError
from kotha.evaluation.instructions import evaluate_instructions
from kotha.finetune import examples
from kotha.finetune.classify import learning_rate
from kotha.finetune.examples import EXAMPLES, PARTS, OnRemark
from kotha.i18n.wording import counted
from kotha.model.config import GPTConfig
from kotha.storage.status import is_file
from kotha.text.corpus.dialogues import MESSAGES, Dialogue, Dialogues, holds_dialogues, read_dialogues
from kotha.text.tokenizer.chat import ChatTemplate, with_marks
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.config import TrainConfig
from kotha.training.loop import OnEvent, Training
from kotha.training.origin import Origin
from kotha.training.tasks.answers import AnswerTokens

_NAMES = (MESSAGES, "group")
# Looks at the validation part in each pass over the examples, and how many without gain end the run.
_LOOKS, _PATIENCE = 2, 6
_USUAL: dict[str, Any] = {
    "optimizer": "adamw",
    "batch_size": 16,
    "weight_decay": 0.01,
    "beta2": 0.98,
    "schedule": "cosine",
    "floor": 0.0,
    "patience": _PATIENCE,
    "keep_checkpoints": 1,
    "spike": None,
    "compile": "off",  # batches change their shape from step to step, and each new one would be compiled
}
_WARMUP = 0.05
# Of many conversations no more are asked: to write all the answers takes longer than it is worth.
_MOST_ASKED = 300


@dataclass(frozen=True)
class InstructRequest:
    """What was asked for; all the rest is chosen."""

    test: Dialogues | None = None  # conversations to be measured on; None: a share of the data
    held_out: float = 0.1  # that share, and another as large to choose by
    epochs: float = 8.0  # passes over the conversations, at most
    changes: dict[str, Any] = field(default_factory=dict)  # settings of the training, by name


def start_instruct(
    data: Dialogues,
    origin: Origin,
    folder: RunFolder,
    request: InstructRequest | None = None,
    *,
    on_event: OnEvent | None = None,
    on_remark: OnRemark | None = None,
) -> dict[str, Any]:
    """Teach a GPT to answer; returns the summary, with the share answered right before and after."""
    request, say = request or InstructRequest(), on_remark or (lambda _: None)
    own = origin.bundle.tokenizer
    if type(origin.bundle.config) is not GPTConfig or own is None:
        raise UsageError(f"{origin.name} is a {origin.bundle.config.family}; only a gpt with a tokenizer can answer")
    folder.check_new()
    tokenizer = with_marks(own)
    if tokenizer is not own:
        if request.changes.get("lora") is not None:
            raise UsageError(
                f"the tokenizer of {origin.name} has no marks for turns; they need rows of their own, and lora leaves "
                "the table of words as it is: teach it without"
            )
        say("the tokenizer had no marks for turns; it has them now, and the model a row for each")
    parts = divide_dialogues(data, request.test, share=request.held_out, seed=int(request.changes.get("seed", 0)))
    how = "guessed" if data.guessed else "as named"
    say(f"fields: {', '.join(data.fields)} ({how}); loss on what the assistant says, and on nothing else")
    say(", ".join(f"{counted(len(parts[part]), 'conversation')} for {part}" for part in PARTS))
    model, config = _settings(origin, parts, tokenizer, request)
    training = _training(model, config, parts, tokenizer, folder, on_event, lambda made: origin.fill(made, tokenizer))
    before = evaluate_instructions(origin.bundle, _asked(parts["test"]), parts["train"])
    say(f"before: {before.right:.1%} of {counted(before.examples, 'unseen question')} answered right")
    rows = {part: [_row(*each) for each in zip(some.turns, some.groups, strict=True)] for part, some in parts.items()}
    about = {"origin": origin.name, "fields": list(data.fields), "before": _figures(before.to_dict())}
    try:
        examples.begin(training, model, tokenizer, _NAMES, rows, **about)
        return _finish(training, parts, folder, say)
    finally:
        folder.release()


def resume_instruct(
    folder: RunFolder, changes: dict[str, Any], *, on_event: OnEvent | None = None, on_remark: OnRemark | None = None
) -> dict[str, Any]:
    """Go on with a run that was stopped, from its last checkpoint."""
    say = on_remark or (lambda _: None)
    folder.claim()
    try:
        model, config = examples.settings_of(folder, changes)
        if type(model) is not GPTConfig or folder.about().get("task") != AnswerTokens.name:
            raise CheckpointError(f"{folder.path} holds no run that learns to answer; go on with what began it")
        parts = read_parts(folder.path)
        training = _training(model, config, parts, Tokenizer.load(folder.path), folder, on_event)
        examples.go_on(training, changes, say)
        return _finish(training, parts, folder, say)
    finally:
        folder.release()


def read_parts(run: Path) -> dict[str, Dialogues]:
    """The conversations that a run learned from, chose by and was measured on."""
    try:
        return {part: read_dialogues(run / EXAMPLES / f"{part}.jsonl", group="group") for part in PARTS}
    except (KothaError, OSError) as error:
        raise CheckpointError(f"{run / EXAMPLES} cannot be read: {error}; a run needs its examples to go on") from error


def learned_from(run: Path | None) -> Dialogues | None:
    """What a run learned to answer from; None where it did not, or is no run."""
    file = None if run is None else run / EXAMPLES / f"{PARTS[0]}.jsonl"
    return read_dialogues(file) if file is not None and is_file(file) and holds_dialogues(file) else None


def divide_dialogues(
    data: Dialogues, test: Dialogues | None = None, *, share: float = 0.1, seed: int = 0
) -> dict[str, Dialogues]:
    """Conversations in three parts, by lot; those of one group stay together, and copies of a prompt are taken once."""
    if not 0 < share <= 0.4:
        raise UsageError(f"held_out={share} is no share that leaves enough to learn from; use 0.05 to 0.4")
    kept_out = set() if test is None else {turns[:-1] for turns in test.turns}
    by_group: dict[str, list[int]] = defaultdict(list)
    for place, (turns, group) in enumerate(zip(data.turns, data.groups, strict=True)):
        if turns[:-1] not in kept_out:
            kept_out.add(turns[:-1])
            by_group[group].append(place)
    missing = ["validation"] if test is not None else ["validation", "test"]
    groups = [*by_group.values()]
    count = max(1, round(share * len(groups)))
    if len(groups) <= count * len(missing):
        raise DataError(
            f"{counted(len(groups), 'group')} of conversations cannot be divided into some to learn from and some held "
            "out; give more"
        )
    order = np.random.default_rng([seed, len(data)]).permutation(len(groups)).tolist()
    parts = {} if test is None else {"test": test}
    for part in missing:
        parts[part] = data.chosen(sorted(place for group in order[:count] for place in groups[group]))
        order = order[count:]
    return {**parts, "train": data.chosen(sorted(place for group in order for place in groups[group]))}


# -- the parts of a run -----------------------------------------------------------------------------------------------


def _settings(
    origin: Origin, parts: dict[str, Dialogues], tokenizer: Tokenizer, request: InstructRequest
) -> tuple[GPTConfig, TrainConfig]:
    model = origin.config(tokenizer)
    assert isinstance(model, GPTConfig), "looked at before"
    if not 0 < request.epochs <= 1000:
        raise UsageError(f"epochs={request.epochs} must be above 0, and at most 1,000")
    given = dict(request.changes)
    if given.get("best_by", "loss") != "loss" or given.get("class_weights", "equal") != "equal":
        raise ConfigError("class_weights and best_by are for classes, and this run learns words; leave them out")
    rate = learning_rate(model.d_model, lora=given.get("lora") is not None)
    config = TrainConfig().change(**{**_USUAL, "learning_rate": rate, **given})
    per_pass = -(-len(parts["train"]) // config.batch_size)
    steps = config.steps if "steps" in given else max(1, round(request.epochs * per_pass))
    pace = {"steps": steps, "warmup_steps": round(_WARMUP * steps), "evaluate_every": max(1, per_pass // _LOOKS)}
    template = ChatTemplate.of(tokenizer)
    assert template is not None, "it was given the marks"
    some = (*parts["train"].turns, *parts["validation"].turns)
    lengths = [len(template.encode(tokenizer, turns)[0]) - 1 for turns in some]
    fitting = [length for length in lengths if length <= model.context_length]
    pace["context_length"] = max(fitting, default=model.context_length)
    config = config.change(**{name: value for name, value in pace.items() if name not in given})
    if config.dropout is not None:
        changed = model.replace(dropout=config.dropout)
        assert isinstance(changed, GPTConfig)
        model = changed
    return model, config


def _training(
    model: GPTConfig,
    config: TrainConfig,
    parts: dict[str, Dialogues],
    tokenizer: Tokenizer,
    folder: RunFolder,
    on_event: OnEvent | None,
    fill: Callable[[Any], Any] | None = None,
) -> Training:
    task = AnswerTokens(model, config, parts["train"].turns, parts["validation"].turns, tokenizer)
    return examples.training_of(model, config, task, folder, tokenizer, on_event=on_event, fill=fill)


def _finish(training: Training, parts: dict[str, Dialogues], folder: RunFolder, say: OnRemark) -> dict[str, Any]:
    """Train to the end; then, and only then, ask about the held-out part."""
    assert isinstance(training.task, AnswerTokens)
    if training.task.left_out:
        gone = counted(training.task.left_out, "conversation")
        say(f"{gone} longer than {training.task.context_length:,} tokens left out")

    def measure(best: Bundle) -> dict[str, Any]:
        score = evaluate_instructions(best, _asked(parts["test"]), parts["train"])
        return {**score.to_dict(), "before": folder.about().get("before")}

    return examples.finish(training, measure, say)


def _asked(test: Dialogues) -> Dialogues:
    return test.chosen(range(min(len(test), _MOST_ASKED)))


def _figures(score: dict[str, Any]) -> dict[str, Any]:
    """A score without what was said."""
    return {name: value for name, value in score.items() if name != "replies"}


def _row(turns: Dialogue, group: str) -> tuple[Any, ...]:
    return [{"role": turn.role, "content": turn.text} for turn in turns], group
