"""``kotha judge``: people choose the better of two continuations in a blind comparison."""

import getpass
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from kotha.cli.interrupts import read_line
from kotha.cli.language import current_language, log, translate
from kotha.cli.options import AsJson, Page
from kotha.cli.terminal import Output, progress
from kotha.i18n.message import Message, Plural
from kotha.i18n.numbers import ascii_digits

if TYPE_CHECKING:
    from kotha.api.judge import BlindPair, Choice, JudgingSession

_KEYS: dict[str, "Choice"] = {"1": "left", "2": "right", "0": "tie"}
_QUIT = ("q", "/exit", "/quit")
_QUESTION = Message("1 for the first, 2 for the second, 0 for neither, q to stop: ")


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
    """Let people choose the better of two continuations in a blind comparison.

    Every pair of models is compared on every prompt, in random order, and each judgement is saved immediately. `kotha
    judge --out j` resumes judging, or shows the result: the strengths of the models (Bradley–Terry) with confidence
    intervals, and the agreement between judges.

    Example: `kotha judge run-1 run-2 --prompts p.txt --out j`

    Args:
        runs: Two or more models: run, model or Hugging Face folders, or box.
        out: Folder of the comparison, to create or to resume.
        prompts: File with one prompt per line, or a .jsonl file with a prompt field.
        judge: Name of the judge (default: your user name).
        page: Output .html file for judges who do not have Kotha, instead of asking at the terminal.
        collect: Judgement files saved from --page pages, to import instead of asking at the terminal.
        tokens: Maximum number of tokens per continuation.
        temperature: Sampling temperature: 0 picks the most likely token, 1 samples from the model's distribution.
        top_k: Number of most likely tokens to sample from.
        seed: Random seed for the texts and for the order within each pair.
    """
    from kotha.api.judge import judge as begin
    from kotha.api.judge import judging_tables

    options: Any = {"tokens": tokens, "temperature": temperature, "top_k": top_k, "seed": seed}
    with progress() as advance:
        judging = begin(runs, prompts, out=out, on_progress=advance, **options)
    if judging.same and runs:
        log(Message("{counted} with identical texts skipped", counted=_pairs(judging.same)))
    if page is not None:
        judging.page(page)
        template = "{counted} in {page}; add the files that judges save from it with --collect"
        log(Message(template, counted=_pairs(len(judging.pairs)), page=page))
    for file in collect:
        name, count = judging.collect(file)
        log(Message("{counted} by {name}", counted=Plural("{n} judgement", "{n:,} judgements", n=count), name=name))
    if page is None and not collect and not as_json:
        _ask_judge(judging, judge or getpass.getuser())
    if page is not None and not judging.judgements():
        return None
    result = judging.result()
    return Output(result, *judging_tables(result))


def _pairs(count: int) -> Plural:
    return Plural("{n} pair", "{n:,} pairs", n=count)


def _ask_judge(judging: "JudgingSession", judge: str) -> None:
    """Show the pairs one after another, and save each answer before showing the next pair."""
    remaining = judging.left_for(judge)
    for index, pair in enumerate(remaining):
        _show(pair, len(judging.pairs) - len(remaining) + index + 1, len(judging.pairs))
        choice = _choice()
        if choice is None:
            resume = shlex.join(["kotha", "judge", "--out", str(judging.path), "--judge", judge])
            log(
                Message(
                    "{counted} left to judge; resume with: {go_on}",
                    counted=_pairs(len(remaining) - index),
                    go_on=resume,
                )
            )
            return
        judging.record(judge, pair.id, choice)


def _show(pair: "BlindPair", number: int, count: int) -> None:
    first, second = ("১", "২") if current_language() == "bn" else ("1", "2")
    position = translate(Message("[{place} of {count}]", place=number, count=count))
    print(f"\n{position} {pair.prompt}\n\n{first}: {pair.left}\n\n{second}: {pair.right}\n", flush=True)


def _choice() -> "Choice | None":
    """Return the judge's choice, or None to stop."""
    while True:
        try:
            answer = read_line(translate(_QUESTION))
        except KeyboardInterrupt:
            print()
            return None
        key = None if answer is None else ascii_digits(answer.strip().lower())
        if key is None or key in _QUIT:
            return None
        if key in _KEYS:
            return _KEYS[key]
        log(_QUESTION)
