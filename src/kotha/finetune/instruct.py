"""Instruction tuning: fine-tune a trained GPT to answer, from a file of conversations.

The loss covers the assistant's turns only (``training/tasks/examples.py``). Some conversations are held out by group:
all questions about one story are in the same part. The accuracy on the test part is measured before the first step, and
again for the best model. If the tokenizer has no chat tokens, they are added, with an embedding row for each.
"""

from pathlib import Path
from typing import Any

from kotha.errors import UsageError
from kotha.finetune.examples import (
    EXAMPLES,
    PARTS,
    ExamplesRequest,
    ExampleTask,
    RunPlan,
    example_file,
    finetune_settings,
    guessed_or_named,
)
from kotha.finetune.splits import Parts, divide_dialogues
from kotha.i18n.message import Message, OnRemark, Plural
from kotha.model.config import GPTConfig
from kotha.storage.status import is_file
from kotha.text.corpus.dialogues import MESSAGES, Dialogues, holds_dialogues, read_dialogues
from kotha.text.tokenizer.chat import ChatTemplate, with_marks
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.initial_weights import Origin
from kotha.training.tasks.examples import AnswerTokens

_USUAL: dict[str, Any] = {"batch_size": 16}
_WARMUP = 0.05


class AnswerQuestions(ExampleTask):
    """Instruction tuning."""

    learns = AnswerTokens
    names = (MESSAGES, "group")
    called = ("{n} conversation", "{n:,} conversations")
    too_long = (
        "skipped {n} conversation longer than {most:,} tokens",
        "skipped {n:,} conversations longer than {most:,} tokens",
    )

    def plan(self, request: ExamplesRequest, say: OnRemark) -> RunPlan:
        origin, data = request.origin, request.data
        assert origin is not None, "instruction tuning starts from a trained model"
        family = origin.bundle.config.family
        if type(origin.bundle.config) is not GPTConfig or origin.bundle.tokenizer is None:
            raise UsageError(
                "{name} is a {family} model; only a gpt with a tokenizer can be trained to answer",
                name=origin.name,
                family=family,
            )
        tokenizer = _with_chat_tokens(origin, origin.bundle.tokenizer, request.changes.get("lora") is not None, say)
        parts = divide_dialogues(data, request.test, share=request.held_out, seed=request.seed)
        template = "fields: {fields} ({how}); loss on the assistant's turns only"
        say(Message(template, fields=data.fields, how=guessed_or_named(data.guessed)))
        self.say_parts(parts, say)
        model = origin.config(tokenizer)
        assert isinstance(model, GPTConfig), "checked above"
        longest = _longest(parts, tokenizer, model.context_length)
        settings = finetune_settings(model, request, _USUAL, len(parts.train), longest, _WARMUP)
        return RunPlan(*settings, parts, tokenizer, {"fields": list(data.fields)})

    def before(self, request: ExamplesRequest, parts: Parts[Any], run: Path, say: OnRemark) -> dict[str, Any]:
        assert request.origin is not None
        before = self.measure(request.origin.bundle, parts, run, say)
        before.pop("replies", None)
        if before:
            remark = Plural(
                "before training: {share:.1%} of {n} unseen question answered correctly",
                "before training: {share:.1%} of {n:,} unseen questions answered correctly",
                n=before["examples"],
                share=before["exact_match"],
            )
            say(remark)
        return {"before": before}

    def task(self, plan: RunPlan) -> AnswerTokens:
        assert isinstance(plan.model, GPTConfig) and plan.tokenizer is not None
        train, validation = (part.turns for part in plan.parts.used_in_training)
        return AnswerTokens(plan.model, plan.config, train, validation, plan.tokenizer)

    def rows(self, part: Dialogues) -> list[tuple[Any, ...]]:
        return [
            ([{"role": turn.role, "content": turn.text} for turn in turns], group)
            for turns, group in zip(part.turns, part.groups, strict=True)
        ]

    def read_part(self, file: Path, about: dict[str, Any]) -> Dialogues:
        with example_file(file.with_suffix(".jsonl")) as written:
            return read_dialogues(written, group="group")


def learned_from(run: Path | None) -> Dialogues | None:
    """Return the training conversations of an instruction tuning run; None for other runs and other folders."""
    file = None if run is None else run / EXAMPLES / f"{PARTS[0]}.jsonl"
    return read_dialogues(file) if file is not None and is_file(file) and holds_dialogues(file) else None


def _with_chat_tokens(origin: Origin, own: Tokenizer, lora: bool, say: OnRemark) -> Tokenizer:
    """Return the tokenizer, with chat tokens added if it has none."""
    tokenizer = with_marks(own)
    if tokenizer is own:
        return own
    if lora:
        raise UsageError(
            "the tokenizer of {name} has no chat tokens, and lora cannot train the embedding rows that they "
            "need; fine-tune without lora",
            name=origin.name,
        )
    say(Message("the tokenizer had no chat tokens; they were added, with an embedding row for each"))
    return tokenizer


def _longest(parts: Parts[Dialogues], tokenizer: Tokenizer, most: int) -> int:
    """Return the number of tokens in the longest conversation that fits the context."""
    template = ChatTemplate.of(tokenizer)
    assert template is not None, "it has chat tokens"
    some = (turns for part in parts.used_in_training for turns in part.turns)
    lengths = (len(template.encode(tokenizer, turns)[0]) - 1 for turns in some)
    return max((length for length in lengths if length <= most), default=most)
