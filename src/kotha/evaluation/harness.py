"""Evaluate a GPT with EleutherAI's lm-evaluation-harness, on your own task files.

A task is a YAML file that names its documents (for example a local jsonl file), the prompt format and the metrics; see
https://github.com/EleutherAI/lm-evaluation-harness/blob/main/docs/new_task_guide.md. The harness makes three kinds of
requests: the likelihood of a continuation after a context, the likelihood of a full text, and generated text.

It is in the extra ``harness``. The harness runs Python functions that are named in a task file, so use
only files that you trust.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from kotha.errors import InstallCommand, KothaError, UsageError
from kotha.evaluation.perplexity import check_windows, token_nats
from kotha.generation.engine import Engine
from kotha.generation.request import Request
from kotha.generation.settings import SamplingSettings
from kotha.model.gpt import GPT
from kotha.text.held_out import end_token
from kotha.text.tokenizer.tokenizer import Tokenizer

# Default number of generated tokens, if the task sets none.
_WRITTEN_TOKENS = 256


class Answers:
    """Answers the harness's requests with a GPT; each text follows an end-of-text token, as in training."""

    def __init__(self, model: GPT, tokenizer: Tokenizer) -> None:
        super().__init__()
        self._model, self._tokenizer = model, tokenizer
        self.end = end_token(tokenizer)
        self.context, self.stride = check_windows(model, None, None)

    def likelihood(self, context: str, continuation: str) -> tuple[float, bool]:
        """Return the log-probability of a continuation, and whether greedy decoding would produce it.

        A context and its continuation are encoded as one text. The number of context tokens is determined by encoding
        the context alone, and spaces between the two belong to the continuation. A context that is too long is
        truncated at its start.
        """
        bare = context.rstrip()
        before = len(self._tokenizer.encode(bare))
        ids = [self.end, *self._tokenizer.encode(context + continuation)]
        n_asked = max(1, len(ids) - 1 - before)
        if n_asked > self.context:
            raise UsageError(
                "a continuation of {n_asked:,} tokens does not fit into the model's context length of {context}",
                n_asked=n_asked,
                context=self.context,
            )
        seen = torch.tensor([ids[-self.context - 1 :]], device=self._model.tokens.weight.device)
        with torch.no_grad():
            logits = self._model(seen[:, :-1])[0, -n_asked:].float()  # (n, V)
        targets = seen[0, -n_asked:]
        log_probabilities = logits.log_softmax(-1).gather(1, targets[:, None])
        return float(log_probabilities.double().sum()), bool((logits.argmax(-1) == targets).all())

    def loglikelihood(self, requests: Any, disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """Return the log-probability of each continuation after its context, and whether it is the greedy one."""
        return [self.likelihood(*request.args) for request in requests]

    def loglikelihood_rolling(self, requests: Any, disable_tqdm: bool = False) -> list[float]:
        """Return the log-probability of each text without its end-of-text token, in the windows of ``perplexity``."""
        sequences = [np.array([self.end, *self._tokenizer.encode(request.args[0])]) for request in requests]
        return [-float(nats.sum()) for nats in token_nats(self._model, sequences, self.context, self.stride)]

    def generate_until(self, requests: Any, disable_tqdm: bool = False) -> list[str]:
        """Generate text after each context, greedily unless the task requests sampling."""
        batch = [_request(*request.args) for request in requests]
        return [result.text for result in Engine(self._model, self._tokenizer).generate(batch)]

    @property
    def tokenizer_name(self) -> str:
        """The tokenizer's fingerprint, which the harness uses as a cache key."""
        return self._tokenizer.fingerprint


def run_task(model: GPT, tokenizer: Tokenizer, file: str | Path) -> dict[str, Any]:
    """Run a task file and return its results by metric name."""
    try:
        from lm_eval import simple_evaluate
        from lm_eval.api.model import LM
        from lm_eval.tasks import TaskManager
    except ImportError as error:
        raise KothaError(
            "task files need lm-evaluation-harness; install it with: {command}", command=InstallCommand("harness")
        ) from error
    adapter = type("Adapter", (Answers, LM), {})(model, tokenizer)
    path = Path(file).resolve()
    manager = TaskManager(include_path=str(path.parent), include_defaults=False)
    name = _task_name(path)
    found = simple_evaluate(
        adapter, tasks=[name], task_manager=manager, log_samples=False, bootstrap_iters=0, verbosity="ERROR"
    )
    figures: dict[str, Any] = found["results"][name]
    return {key.split(",")[0]: value for key, value in figures.items() if "stderr" not in key and key != "alias"}


def _task_name(path: Path) -> str:
    if not path.is_file():
        raise UsageError("task file not found: {path}", path=path)
    lines = path.read_text(encoding="utf-8").splitlines()
    named = next((line for line in lines if line.startswith("task:")), None)
    if named is None:
        raise UsageError("{path} has no task name; add a line such as `task: my_task`", path=path)
    return named.removeprefix("task:").split("#")[0].strip(" '\"")


def _request(context: str, options: dict[str, Any]) -> Request:
    until = options.get("until") or []
    temperature = float(options.get("temperature", 1.0)) if options.get("do_sample") else 0.0
    cut: dict[str, Any] = {name: options.get(name) for name in ("top_k", "top_p", "repetition_penalty")}
    settings = SamplingSettings(temperature=max(0.0, temperature), **cut)
    return Request(
        prompt=context,
        tokens=int(options.get("max_gen_toks", options.get("max_new_tokens", _WRITTEN_TOKENS))),
        settings=settings,
        stop=tuple(each for each in ([until] if isinstance(until, str) else until) if each),
    )
