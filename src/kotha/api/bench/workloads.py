"""The benchmarked implementations: Kotha's training step, engine and tokenizer, and their Hugging Face counterparts.

For training, a step of Kotha's loop is compared with the step that ``transformers`` users write. Both use the same
weights, tokens, optimizer, clipping and precision, so their losses match. Dropout is off, because the random masks
would differ; on a GPU both implementations are compiled. Generation uses the same weights and prompts, and tokenization
the same tokenizer.json. Kotha tokenizes as ``kotha prepare`` does in one process, without a word cache from another
round.
"""

import itertools
import os
from collections.abc import Sequence
from functools import partial
from itertools import islice
from statistics import median
from typing import Any

import numpy as np
import tokenizers
import torch
from torch import Tensor, nn

from kotha.api.bench.rounds import BenchmarkResult, Work, check_count, measure_rounds
from kotha.api.model import load
from kotha.artifacts.run_folder import RunFolder
from kotha.errors import DataError, InstallCommand, UsageError, library
from kotha.export.huggingface.config import choose_layout, write_config
from kotha.export.weight_names import foreign_weights
from kotha.generation.engine import Engine
from kotha.generation.request import Request
from kotha.generation.settings import SamplingSettings
from kotha.generation.weights import DTYPES, Weights
from kotha.i18n.message import Message, OnProgress, Option
from kotha.model.config import GPTConfig, ModelConfig
from kotha.model.gpt import GPT
from kotha.model.presets import preset as config_of
from kotha.text.corpus.documents import read_documents
from kotha.text.encoding import encode_documents
from kotha.text.parallel.local import LocalPool
from kotha.text.stories.corpus import stories
from kotha.text.tokenizer.importers import import_tokenizer
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.trainers import train
from kotha.training.config import TrainConfig
from kotha.training.device import Arithmetic, choose_arithmetic, peak_flops_per_second
from kotha.training.distributed import Ranks
from kotha.training.loop import Training
from kotha.training.plan.step_time import count_work, predict_seconds_per_step
from kotha.training.tasks.task import Batch, NextToken

DRAWN = SamplingSettings(temperature=0.8, top_k=40, repetition_penalty=None)
_PROMPT, _MOST_ROWS = 16, 1024
_DOCUMENTS, _PIECES = 400, 2000  # documents to tokenize, and size of the tokenizer trained on them
_MISSING = Message("it is not installed; install it with: {command}", command=InstallCommand("transformers"))


class RandomTokens(NextToken):
    """Next-token prediction on random tokens, for measuring speed only."""

    def __init__(self, model: GPTConfig) -> None:
        self._vocab_size, self._label_smoothing, self.context_length = model.vocab_size, 0.0, model.context_length
        self.auxiliary_models = ()

    def batch(self, step: int, first: int, count: int) -> Batch:
        """Return sequences that depend only on the step."""
        shape, n_targets = (count, self.context_length + 1), count * self.context_length
        sequences = np.random.default_rng([step, first]).integers(0, self._vocab_size, shape)
        return Batch({"sequences": torch.from_numpy(sequences)}, {"tokens": n_targets}, n_targets)


def gpt_only(model: str | ModelConfig) -> GPTConfig:
    """Return a GPT config without dropout, from a config or a preset name; other families raise ``UsageError``."""
    config = config_of(model) if isinstance(model, str) else model
    if not isinstance(config, GPTConfig):
        raise UsageError(
            "the benchmark needs a GPT, not a {family}; use pocket, bangla-58m or gpt2", family=config.family
        )
    return config.replace(dropout=0.0, attention_dropout=0.0)


def bench_training(
    of: str | ModelConfig, batch_size: int, precision: Any, rounds: int, tell: OnProgress, device: str | None = None
) -> BenchmarkResult:
    """Measure training tokens per second, Kotha's share of peak speed, and the predicted step time."""
    check_count("batch_size", batch_size, _MOST_ROWS)
    model, arithmetic = gpt_only(of), choose_arithmetic(precision, device)
    settings, context = constant_settings(batch_size, arithmetic), model.context_length
    title = Message(
        "training in {precision}, {rows} x {context} tokens per step",
        precision=arithmetic.precision,
        rows=batch_size,
        context=context,
    )
    outcome = BenchmarkResult(title, "tokens", batch_size * context)
    sides = {"kotha": our_step, "transformers": their_step}
    makers = {name: partial(make, model, settings, arithmetic) for name, make in sides.items()}
    measure_rounds(outcome, makers, arithmetic.device, rounds, tell)
    seconds = median(outcome.seconds["kotha"])
    predicted = predict_seconds_per_step(model, settings, batch_size, context, arithmetic)
    products = peak_flops_per_second(arithmetic.device, arithmetic.dtype)
    share = outcome.amount / seconds * count_work(model, context).training_per_token / products
    outcome.figures |= {"peak_share": share, "seconds_per_step": seconds, "predicted_seconds_per_step": predicted}
    outcome.remarks += [
        Message(
            "Kotha reaches {share:.0%} of the {products:,.0f} GFLOP/s of large matrix products on this machine.",
            share=share,
            products=products / 1e9,
        ),
        Message(
            "A step took {seconds:.4g} seconds; `kotha plan` predicts {predicted:.4g}.",
            seconds=seconds,
            predicted=predicted,
        ),
    ]
    return outcome


def constant_settings(batch_size: int, arithmetic: Arithmetic) -> TrainConfig:
    """Return settings that make all steps equal: no gradient accumulation, and a constant learning rate."""
    compiled = "on" if arithmetic.device.type == "cuda" else "off"
    given: Any = {"schedule": "constant", "warmup_steps": 0, "precision": arithmetic.precision, "compile": compiled}
    return TrainConfig(batch_size=batch_size, micro_batch_size=batch_size, **given)


def our_step(model: GPTConfig, settings: TrainConfig, arithmetic: Arithmetic) -> Work:
    """Return a function that runs a step of Kotha's loop and returns its loss; it writes no files."""
    training = Training(
        model, settings, RandomTokens(model), RunFolder(os.devnull), ranks=Ranks(device=str(arithmetic.device))
    )
    training.learner.train()
    training.fitting.settle(training.gradients)
    steps = itertools.count()
    return lambda: training.update(next(steps))[0]


def their_step(model: GPTConfig, settings: TrainConfig, arithmetic: Arithmetic) -> Work:
    """Return a training step in transformers: ``model(input_ids, labels)`` under autocast, clipping, AdamW."""
    torch.manual_seed(settings.seed)
    theirs = twin(GPT(model)).to(arithmetic.device).train()
    rates: Any = {"lr": settings.learning_rate, "betas": (settings.beta1, settings.beta2)}
    optimizer = torch.optim.AdamW(theirs.parameters(), **rates, fused=arithmetic.device.type == "cuda")
    forward = torch.compile(theirs) if settings.compile == "on" else theirs
    task, steps = RandomTokens(model), itertools.count()

    def step() -> Tensor:
        sequences = task.batch(next(steps), 0, settings.batch_size).to(arithmetic.device)["sequences"]
        inputs, targets = sequences[:, :-1], sequences[:, 1:].contiguous()
        optimizer.zero_grad(set_to_none=True)
        with arithmetic.autocast():
            # Pass shifted labels, so that both predict the same number of tokens.
            loss: Tensor = forward(input_ids=inputs, labels=inputs, shift_labels=targets, use_cache=False).loss
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(theirs.parameters(), settings.gradient_clip or float("inf"))
        optimizer.step()
        return loss.detach()

    return step


def twin(model: GPT) -> Any:
    """Convert a GPT to a transformers model with the same weights; raise an error if no supported layout matches."""
    layout = choose_layout(model.config)
    kind = getattr(library("transformers", _MISSING), layout.architecture)
    theirs = kind(kind.config_class(**{**write_config(layout, model.config, None, "float32"), "pad_token_id": 0}))
    found = theirs.load_state_dict(foreign_weights(model, layout), strict=False)
    # A head tied to the embeddings is missing from the state dict.
    assert not found.unexpected_keys and set(found.missing_keys) <= {"lm_head.weight"}, f"other weights: {found}"
    return theirs.eval()


def bench_writing(
    of: GPT | str | None,
    preset: str | None,
    weights: Weights,
    batch_size: int,
    n_tokens: int,
    rounds: int,
    tell: OnProgress,
) -> BenchmarkResult:
    """Measure generated tokens per second in a batch; transformers uses float32 instead of int8.

    ``of`` is a model or a run (default: an untrained model with the preset's sizes).
    """
    check_count("batch_size", batch_size, _MOST_ROWS)
    if of is not None and preset is not None:
        raise UsageError("give either a run or {preset}, not both", preset=Option("preset"))
    if of is None:
        model = GPT(gpt_only(preset or "pocket")).to(choose_arithmetic("float32").device)
    else:
        model = of if isinstance(of, GPT) else load(of).gpt[0]
    room = model.config.context_length - _PROMPT
    if room < 1:
        raise UsageError(
            "a context of {context_length} tokens is too short for a prompt of {prompt} tokens and its "
            "continuation; use a model with a longer context",
            context_length=model.config.context_length,
            prompt=_PROMPT,
        )
    check_count("tokens", n_tokens, room)
    title = Message(
        "generating {rows} x {tokens} tokens in {weights}", rows=batch_size, tokens=n_tokens, weights=weights
    )
    outcome = BenchmarkResult(title, "tokens", batch_size * n_tokens)
    sides = {"kotha": our_writer, "transformers": their_writer}
    makers = {name: partial(make, model, weights, batch_size, n_tokens) for name, make in sides.items()}
    measure_rounds(outcome, makers, model.tokens.weight.device, rounds, tell)
    return outcome


def our_writer(model: GPT, weights: Weights, batch_size: int, n_tokens: int) -> Work:
    """Return a function that generates with the engine and returns the ids; the time includes reading the prompts."""
    engine = Engine(model, None, max_batch=batch_size, weights=weights)
    requests = [
        Request(prompt=tuple(ids), tokens=n_tokens, settings=DRAWN) for ids in prompts(model, batch_size).tolist()
    ]
    return lambda: [list(result.ids) for result in engine.generate(requests)]


def their_writer(model: GPT, weights: Weights, batch_size: int, n_tokens: int) -> Work:
    """Return a function that generates with transformers and returns the ids."""
    ids = prompts(model, batch_size)
    theirs = twin(model).to(ids.device, DTYPES[weights])
    options: Any = {"do_sample": True, "temperature": DRAWN.temperature, "top_k": DRAWN.top_k}
    options |= {"attention_mask": torch.ones_like(ids), "max_new_tokens": n_tokens}
    return lambda: theirs.generate(ids, **options)[:, _PROMPT:].tolist()


def prompts(model: GPT, n_rows: int) -> Tensor:
    """Return random ids, the same for both implementations: (B, T)."""
    drawn = torch.randint(1, model.config.vocab_size, (n_rows, _PROMPT), generator=torch.Generator().manual_seed(0))
    return drawn.to(model.tokens.weight.device)


def bench_tokenizing(
    source: Sequence[str] | str | None, tokenizer: Tokenizer | str | None, rounds: int, tell: OnProgress
) -> BenchmarkResult:
    """Measure tokenized megabytes per second, on a list of texts, a file, or stories."""
    if source is None or isinstance(source, str):
        documents: Any = read_documents([source]) if source else stories()
        texts: Sequence[str] = [document.text for document in islice(documents, _DOCUMENTS)]
    else:
        texts = source
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    if not megabytes:
        raise DataError("no text to measure on; specify a file or a folder of texts")
    if not isinstance(tokenizer, Tokenizer):
        tokenizer = import_tokenizer(tokenizer) if tokenizer else train(texts, vocab_size=_PIECES)
    title = Message("tokenizing {size:.3g} MB, {pieces:,} pieces", size=megabytes, pieces=tokenizer.vocab_size)
    outcome = BenchmarkResult(title, "MB", megabytes)
    makers = {"kotha": partial(our_encoder, tokenizer, texts), "transformers": partial(their_encoder, tokenizer, texts)}
    measure_rounds(outcome, makers, torch.device("cpu"), rounds, tell)
    return outcome


def our_encoder(tokenizer: Tokenizer, texts: Sequence[str]) -> Work:
    """Return a function that encodes as ``prepare`` does, with a word cache, and returns the ids."""
    labelled = [("", text) for text in texts]
    return lambda: [each.ids.tolist() for each in encode_documents(labelled, tokenizer, "uint32", None, LocalPool(1))]


def their_encoder(tokenizer: Tokenizer, texts: Sequence[str]) -> Work:
    """Return a function that encodes with transformers; both treat special tokens in the text as plain text."""
    same = tokenizers.Tokenizer.from_str(tokenizer.backend.to_str())
    theirs = library("transformers", _MISSING).PreTrainedTokenizerFast(tokenizer_object=same)
    return lambda: theirs(list(texts), add_special_tokens=False, split_special_tokens=True)["input_ids"]
