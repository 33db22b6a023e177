"""``kotha generate``: a model goes on with a text."""

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from kotha.errors import UsageError

if TYPE_CHECKING:
    from kotha.generate.answers import Request, Result
    from kotha.generate.engine import Engine

# How many other tokens --probabilities shows at each place.
_ALTERNATIVES = 5

Run = Annotated[Path, Parameter(help="A run folder (its best model), or a model folder.")]
Tokens = Annotated[int, Parameter(help="Tokens to write at most.")]
Temperature = Annotated[float, Parameter(help="0 always takes the best token, 1 draws as the model says.")]
TopK = Annotated[int | None, Parameter(negative_none="no-", help="Draw among this many of the best tokens.")]
TopP = Annotated[float | None, Parameter(help="Draw among the fewest best tokens with this probability together.")]
MinP = Annotated[float | None, Parameter(help="Draw among tokens at least this share as likely as the best.")]
Penalty = Annotated[float | None, Parameter(help="Above 1: what was said becomes less likely.")]
Seed = Annotated[int, Parameter(help="The same seed gives the same text.")]
Stop = Annotated[tuple[str, ...], Parameter(negative="", help="End before this text; may be given again.")]
WeightsKind = Annotated[
    Literal["as-they-are", "auto", "float32", "bfloat16", "int8"],
    Parameter(help="Narrower ones are read faster and say almost the same; auto measures."),
]
Json = Annotated[bool, Parameter(name="--json", negative="", help="JSON on stdout.")]


def generate(
    run: Run,
    prompt: Annotated[str, Parameter(help="Where the text begins; left out, the start of a document.")] = "",
    /,
    *,
    tokens: Tokens = 150,
    temperature: Temperature = 0.8,
    top_k: TopK = 40,
    top_p: TopP = None,
    min_p: MinP = None,
    repetition_penalty: Penalty = None,
    seed: Seed = 0,
    stop: Stop = (),
    n: Annotated[int, Parameter(name="--n", help="How many texts; their seeds count up.")] = 1,
    probabilities: Annotated[bool, Parameter(negative="", help="Also each token's probability.")] = False,
    weights: WeightsKind = "as-they-are",
    as_json: Json = False,
) -> None:
    """Go on with a text. Letters appear as they are written."""
    from kotha.generate.answers import Request
    from kotha.generate.settings import SamplingSettings

    if n < 1:
        raise UsageError(f"--n {n} asks for nothing; use 1 or more")
    settings: dict[str, Any] = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
    requests = [
        Request(
            prompt=prompt,
            tokens=tokens,
            settings=SamplingSettings(**settings, repetition_penalty=repetition_penalty, seed=seed + place),
            stop=stop,
            alternatives=_ALTERNATIVES if probabilities else None,
        )
        for place in range(n)
    ]
    engine = open_engine(run, weights, min(n, 64))
    if as_json:
        rows = [
            as_row(prompt, request, result) for request, result in zip(requests, engine.generate(requests), strict=True)
        ]
        print(json.dumps(rows[0] if n == 1 else {**rows[0], "samples": rows}, ensure_ascii=False, indent=2))
        return
    for request in requests:
        result = show(prompt, engine, request)
        if probabilities:
            print("\n".join(_table(result)))
        note = f"{result.tokens} tokens, {result.tokens_per_second:,.0f} a second, ended by {result.stopped}"
        print(f"kotha: {note}", file=sys.stderr)


def open_engine(run: Path, weights: str, max_batch: int = 1) -> "Engine":
    """The engine of a run or model folder, on a GPU where there is one."""
    import torch

    from kotha import bundle
    from kotha.generate.engine import Engine

    loaded = bundle.load(run, "cuda" if torch.cuda.is_available() else "cpu")
    if loaded.tokenizer is None:
        raise UsageError(f"{run} holds a {loaded.config.family} model without a tokenizer; it writes no text")
    kind: Any = None if weights == "as-they-are" else weights
    return Engine(loaded.model, loaded.tokenizer, max_batch=max_batch, weights=kind)  # type: ignore[arg-type]


def show(prompt: str, engine: "Engine", request: "Request") -> "Result":
    """Write an answer behind its prompt, letters as they come, and end the line."""
    print(prompt, end="", flush=True)
    result = None
    for event in engine.stream(request):
        print(event.text, end="", flush=True)
        result = event.result
    print(flush=True)
    assert result is not None, "the last event carries the result"
    return result


def as_row(prompt: str, request: "Request", result: "Result") -> dict[str, Any]:
    """A result as JSON has it; ``text`` is what a terminal shows, prompt and answer."""
    row: dict[str, Any] = {
        "text": prompt + result.text,
        "prompt": prompt,
        "answer": result.text,
        "tokens": result.tokens,
        "prompt_tokens": result.prompt_tokens,
        "tokens_per_second": round(result.tokens_per_second, 2),
        "stopped": result.stopped,
        "seed": request.settings.seed,
    }
    if request.alternatives is not None:
        row["probabilities"] = [
            {
                **_chance(token),
                "alternatives": [_chance(other) for other in token.alternatives],
            }
            for token in result.written
        ]
    return row


def _chance(token: Any) -> dict[str, Any]:
    return {"token": token.text, "id": token.id, "probability": round(math.exp(token.log_probability), 6)}


def _table(result: "Result") -> Iterator[str]:
    """A line for each token: its probability, and what else could have stood there."""
    for token in result.written:
        others = "  ".join(f"{other.text!r} {math.exp(other.log_probability):.1%}" for other in token.alternatives)
        yield f"{math.exp(token.log_probability):7.1%}  {token.text!r:<16} {others}"
