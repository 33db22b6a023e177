"""``kotha generate``: generate text that continues a prompt."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from kotha.cli.language import log
from kotha.cli.model_argument import model_and_prompt
from kotha.cli.options import AsJson, RunName, Writing
from kotha.errors import UsageError
from kotha.i18n.message import Message, Plural, Text

if TYPE_CHECKING:
    from kotha.api.engine import Engine, Request, Result

# Number of alternatives that --probabilities shows per token.
_ALTERNATIVES = 5
_STOP_REASONS = {
    "end": Message("end of the text"),
    "stop string": Message("stop string reached"),
    "length": Message("token limit reached"),
    "cancelled": Message("cancelled"),
}


def generate(
    run: RunName = None,
    prompt: str | None = None,
    /,
    *,
    n: Annotated[int, Parameter(name="--n")] = 1,
    probabilities: bool = False,
    writing: Writing = Writing(),  # noqa: B008 - frozen
    as_json: AsJson = False,
) -> None:
    """Generate text that continues a prompt; the output is streamed as it is generated.

    Without RUN, the bundled model is used.

    Examples: `kotha generate 'নদীর ধারে'`, `kotha generate run 'নদীর ধারে' --temperature 0.6`.

    Args:
        prompt: Text to continue (default: empty, the start of a document).
        n: Number of texts; each uses the next seed.
        probabilities: Also show the probability of each token.
    """
    from kotha.api.engine import Request, open_engine

    if n < 1:
        raise UsageError("--n must be at least 1, not {n}", n=n)
    folder, start = model_and_prompt(run, prompt, "generate")
    options: Any = {"prompt": start, "tokens": writing.tokens, "stop": writing.stop}
    options["alternatives"] = _ALTERNATIVES if probabilities else None
    requests = [Request(settings=writing.settings(index), **options) for index in range(n)]
    engine = open_engine(folder, min(n, 64), writing.weights)
    context_length = engine.model.config.context_length
    if as_json:
        results = zip(requests, engine.generate(requests), strict=True)
        rows = [as_row(start, request, result, context_length) for request, result in results]
        from kotha.cli.terminal import print_json  # imports rich, which plain text does not need

        print_json(rows[0] if n == 1 else {**rows[0], "samples": rows})
        return
    for request in requests:
        result = show(start, engine, request)
        if probabilities:
            print("\n".join(_table(result)))
        log(
            Message(
                "{tokens}, {speed:,.0f} per second; {why}{forgotten}",
                tokens=Plural("{n} token", "{n:,} tokens", n=result.tokens),
                speed=result.tokens_per_second,
                why=_STOP_REASONS[result.stopped],
                forgotten=_dropped_text(result, context_length),
            )
        )


def _dropped_text(result: "Result", context_length: int) -> Text:
    """Return a remark that states which part of the text did not fit in the model's context."""
    if result.prompt_tokens > context_length:
        return Message(
            "; only the last {n:,} tokens of the prompt were used, because the prompt is longer than the model's "
            "context",
            n=context_length,
        )
    if result.prompt_tokens + result.tokens > context_length:
        return Message(
            "; the beginning of the text was dropped, because the model's context is limited to {n:,} tokens",
            n=context_length,
        )
    return ""


def show(prompt: str, engine: "Engine", request: "Request") -> "Result":
    """Print a prompt, stream its continuation, and end the line."""
    print(prompt, end="", flush=True)
    result = None
    for event in engine.stream(request):
        print(event.text, end="", flush=True)
        result = event.result
    print(flush=True)
    assert result is not None, "the last event carries the result"
    return result


def as_row(prompt: str, request: "Request", result: "Result", context_length: int) -> dict[str, Any]:
    """Convert a result to JSON; ``text`` is the prompt with its continuation."""
    row: dict[str, Any] = {
        "text": prompt + result.text,
        "prompt": prompt,
        "answer": result.text,
        "tokens": result.tokens,
        "prompt_tokens": result.prompt_tokens,
        "context_length": context_length,
        "tokens_per_second": round(result.tokens_per_second, 2),
        "stopped": result.stopped,
        "seed": request.settings.seed,
    }
    if request.alternatives is not None:
        row["probabilities"] = [token.to_dict() for token in result.written]
    return row


def _table(result: "Result") -> Iterator[str]:
    """Yield a line for each token: its probability and its alternatives."""
    for token in result.written:
        others = "  ".join(f"{other.text!r} {math.exp(other.log_probability):.1%}" for other in token.alternatives)
        yield f"{math.exp(token.log_probability):7.1%}  {token.text!r:<16} {others}"
