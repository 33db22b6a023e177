"""``kotha judge``: a person says which of two models writes better, without knowing which is which."""

import getpass
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from kotha.cli.interrupts import read_line
from kotha.cli.language import log, spoken_language, translate
from kotha.cli.options import AsJson, Page
from kotha.cli.terminal import Output, progress
from kotha.i18n.message import Message, Plural
from kotha.i18n.numbers import ascii_digits

if TYPE_CHECKING:
    from kotha.api.judge import BlindPair, Choice, Judging

_KEYS: dict[str, "Choice"] = {"1": "left", "2": "right", "0": "tie"}
_LEAVE = ("q", "/exit", "/quit")
_ASKED = Message("1 the first, 2 the second, 0 neither, q to stop: ")


def judge(
    runs: tuple[str, ...] = (),
    /,
    *,
    out: Path,
    prompts: Path | None = None,
    judge: str | None = None,
    page: Page = None,
    collect: Annotated[tuple[Path, ...], Parameter(consume_multiple=True)] = (),
    tokens: int = 60,
    temperature: float = 0.8,
    top_k: Annotated[int | None, Parameter(negative="--no-top-k")] = 40,
    seed: int = 0,
    as_json: AsJson = False,
) -> Output | None:
    """Let a person choose the better of two blind continuations: `kotha judge run-1 run-2 --prompts p.txt --out j`.

    Every two models meet at every prompt, in an order by lot. Each judgement is kept at once: `kotha judge --out j`
    goes on, or shows who wins: strengths (Bradley–Terry) with their interval, and how far judges agree.

    Args:
        runs: Two or more models: run, model or Hugging Face folders, or box.
        out: Folder of the comparison, to create or to resume.
        prompts: File with one prompt per line, or .jsonl with a prompt field.
        judge: Name of the judge (default: your user name).
        page: Output file for a page on which people without Kotha can judge.
        collect: Answer files returned from such a page, to add to the comparison.
        tokens: Maximum number of tokens per continuation.
        temperature: Sampling temperature: 0 always takes the likeliest token, 1 samples from the model's distribution.
        top_k: Number of likeliest tokens to sample from.
        seed: Random seed for the texts and for the order within each pair.
    """
    from kotha.api.judge import judge as begin
    from kotha.api.judge import judging_tables

    how: Any = {"tokens": tokens, "temperature": temperature, "top_k": top_k, "seed": seed}
    with progress() as advance:
        judging = begin(runs, prompts, out=out, on_progress=advance, **how)
    if judging.same and runs:
        log(Message("{counted} of equal texts skipped", counted=_pairs(judging.same)))
    if page is not None:
        judging.page(page)
        told = "{counted} in {page}; add the files it returns with --collect"
        log(Message(told, counted=_pairs(len(judging.pairs)), page=page))
    for file in collect:
        name, count = judging.collect(file)
        log(Message("{counted} by {name}", counted=Plural("{n} judgement", "{n:,} judgements", n=count), name=name))
    if page is None and not collect and not as_json:
        _ask(judging, judge or getpass.getuser())
    if page is not None and not judging.judgements():
        return None
    result = judging.result()
    return Output(result, *judging_tables(result))


def _pairs(count: int) -> Plural:
    return Plural("{n} pair", "{n:,} pairs", n=count)


def _ask(judging: "Judging", judge: str) -> None:
    """Show a judge pair after pair, and keep each answer before the next is shown."""
    waiting = judging.left_for(judge)
    for place, pair in enumerate(waiting):
        _show(pair, len(judging.pairs) - len(waiting) + place + 1, len(judging.pairs))
        choice = _choice()
        if choice is None:
            go_on = shlex.join(["kotha", "judge", "--out", str(judging.path), "--judge", judge])
            log(Message("{counted} left; resume with: {go_on}", counted=_pairs(len(waiting) - place), go_on=go_on))
            return
        judging.record(judge, pair.id, choice)


def _show(pair: "BlindPair", place: int, count: int) -> None:
    first, second = ("১", "২") if spoken_language() == "bn" else ("1", "2")
    begins = translate(Message("[{place} of {count}]", place=place, count=count))
    print(f"\n{begins} {pair.prompt}\n\n{first}: {pair.left}\n\n{second}: {pair.right}\n", flush=True)


def _choice() -> "Choice | None":
    """What was chosen; None to stop."""
    while True:
        try:
            answer = read_line(translate(_ASKED))
        except KeyboardInterrupt:
            print()
            return None
        chosen = None if answer is None else ascii_digits(answer.strip().lower())
        if chosen is None or chosen in _LEAVE:
            return None
        if chosen in _KEYS:
            return _KEYS[chosen]
        log(_ASKED)
