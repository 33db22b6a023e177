"""EleutherAI's lm-evaluation-harness drives a model of ours, on task files of one's own.

A task is a YAML file that names its documents (a local jsonl file, say) and how a question is put and judged; see
https://github.com/EleutherAI/lm-evaluation-harness/blob/main/docs/new_task_guide.md. The harness asks three things of a
model, and nothing else: how likely a continuation is after a context, how likely a whole text is, and what it writes.

Install it with ``pip install kotha[harness]``. A task file can name Python functions, which the harness then runs: use
only files that you trust.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from kotha.errors import KothaError, UsageError
from kotha.evaluation.perplexity import check_windows, token_nats
from kotha.generation.engine import Engine
from kotha.generation.request import Request
from kotha.generation.settings import SamplingSettings
from kotha.model.gpt import GPT
from kotha.text.held_out import end_token
from kotha.text.tokenizer.tokenizer import Tokenizer

# What a task that does not say otherwise lets a model write.
_WRITTEN_TOKENS = 256


class Answers:
    """The three questions of the harness, answered by a GPT; every text starts as a document does, after an end."""

    def __init__(self, model: GPT, tokenizer: Tokenizer) -> None:
        super().__init__()
        self._model, self._tokenizer = model, tokenizer
        self.end = end_token(tokenizer)
        self.context, self.stride = check_windows(model, None, None)

    def likelihood(self, context: str, continuation: str) -> tuple[float, bool]:
        """Log-probability of a continuation, and whether it is what the model finds likeliest, token by token.

        Both are encoded as one text, and the context's tokens are those it has alone; spaces between the two belong to
        the continuation. Of a context that is too long, the end is kept.
        """
        bare = context.rstrip()
        before = len(self._tokenizer.encode(bare))
        ids = [self.end, *self._tokenizer.encode(context + continuation)]
        n_asked = max(1, len(ids) - 1 - before)
        if n_asked > self.context:
            raise UsageError(
                "a continuation of {n_asked:,} tokens does not fit the model's context of {context}",
                n_asked=n_asked,
                context=self.context,
            )
        seen = torch.tensor([ids[-self.context - 1 :]], device=self._model.tokens.weight.device)
        with torch.no_grad():
            logits = self._model(seen[:, :-1])[0, -n_asked:].float()  # (n, V)
        asked = seen[0, -n_asked:]
        chances = logits.log_softmax(-1).gather(1, asked[:, None])
        return float(chances.double().sum()), bool((logits.argmax(-1) == asked).all())

    def loglikelihood(self, requests: Any, disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """How likely each continuation is after its context."""
        return [self.likelihood(*request.args) for request in requests]

    def loglikelihood_rolling(self, requests: Any, disable_tqdm: bool = False) -> list[float]:
        """Log-probability of each text, in the windows of ``kotha evaluate``; the end is not asked for."""
        sequences = [np.array([self.end, *self._tokenizer.encode(request.args[0])]) for request in requests]
        return [-float(nats.sum()) for nats in token_nats(self._model, sequences, self.context, self.stride)]

    def generate_until(self, requests: Any, disable_tqdm: bool = False) -> list[str]:
        """What the model writes after each context; greedily, unless the task says to draw."""
        asked = [_request(*request.args) for request in requests]
        return [result.text for result in Engine(self._model, self._tokenizer).generate(asked)]

    @property
    def tokenizer_name(self) -> str:
        """What the harness keeps its cache by."""
        return self._tokenizer.fingerprint


def run_task(model: GPT, tokenizer: Tokenizer, file: str | Path) -> dict[str, Any]:
    """The results of a task file, by the names of its metrics."""
    try:
        from lm_eval import simple_evaluate
        from lm_eval.api.model import LM
        from lm_eval.tasks import TaskManager
    except ImportError as error:
        raise KothaError("task files need lm-evaluation-harness: pip install 'kotha[harness]'") from error
    driven = type("Adapter", (Answers, LM), {})(model, tokenizer)
    path = Path(file).resolve()
    manager = TaskManager(include_path=str(path.parent), include_defaults=False)
    name = _task_name(path)
    found = simple_evaluate(
        driven, tasks=[name], task_manager=manager, log_samples=False, bootstrap_iters=0, verbosity="ERROR"
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


def _request(context: str, asked: dict[str, Any]) -> Request:
    until = asked.get("until") or []
    temperature = float(asked.get("temperature", 1.0)) if asked.get("do_sample") else 0.0
    cut: dict[str, Any] = {name: asked.get(name) for name in ("top_k", "top_p", "repetition_penalty")}
    settings = SamplingSettings(temperature=max(0.0, temperature), **cut)
    return Request(
        prompt=context,
        tokens=int(asked.get("max_gen_toks", asked.get("max_new_tokens", _WRITTEN_TOKENS))),
        settings=settings,
        stop=tuple(each for each in ([until] if isinstance(until, str) else until) if each),
    )
