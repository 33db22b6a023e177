"""``kotha evaluate``: how well a model foretells a text, beside what counting reaches."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kotha.cli.flags import BOX, Field, InLanguage, Json, OnErrors, Pair, RunName, TextItself, flag, group
from kotha.cli.naming import NAME, place
from kotha.cli.spoken import tell
from kotha.cli.terminal import problems_told, progress, show
from kotha.errors import UsageError


@group
@dataclass(frozen=True, kw_only=True)
class Measuring:
    """How it is measured: one flag for each field."""

    context: Annotated[int | None, flag("Tokens in a window; left out: the model's context.")] = None
    stride: Annotated[int | None, flag("Tokens a window moves on by; left out: half the context.")] = None
    baselines: Annotated[
        str, flag("Data folder to count n-grams in, or none; auto: the one the run was trained on.")
    ] = "auto"
    split: Annotated[str, flag("Split of a data folder to measure on.")] = "validation"
    field: Field = "text"
    pair: Pair = None
    perturb: Annotated[
        tuple[str, ...],
        flag(
            "Also on the text with noise: spelling, typos, latin, digits, punctuation, or a file.",
            consume_multiple=True,
        ),
    ] = ()
    share: Annotated[float, flag("Share of the words that --perturb changes.")] = 0.2
    errors: OnErrors = "stop"


def evaluate(
    run: RunName = None,
    path: Annotated[
        str | None, flag("A text: a file, folder or data folder; or a harness task (.yaml).", name="PATH")
    ] = None,
    /,
    *,
    text: TextItself = None,
    measuring: Measuring = Measuring(),  # noqa: B008 - frozen
    device: Annotated[str, flag("cpu, cuda, or auto.")] = "auto",
    language: InLanguage = "en",
    as_json: Json = False,
) -> None:
    """Measure a model on a text: loss, perplexity, bits per byte and per character; say whether it learned from it.

    Each document is read from its start, in windows that move on by the stride; every token is scored once. A model
    that translates is measured by BLEU and chrF++ on a table of pairs: their fields are guessed, or named by --pair en
    bn. One that names classes is measured on texts with labels, beside the commonest class and TF-IDF with logistic
    regression, or on images beside the nearest neighbour. A BERT guesses hidden words and judges pairs of stretches,
    beside what counting reaches. A file of questions with answers (or messages) is asked: how
    many are answered right. With --perturb: how far these figures fall when the text is written otherwise.
    """
    import kotha
    from kotha.api.scores import measure

    folder, held_out = _model_and_text(run, path, text)
    if measuring.pair is not None and text is not None:
        raise UsageError("--pair names fields of a file with pairs; give a PATH instead of --text")
    asked = {**vars(measuring), "baselines": None if measuring.baselines == "none" else measuring.baselines}
    with progress() as advance, problems_told() as problems:
        lm = kotha.load(folder, device)
        found = measure(lm, held_out, **asked, on_progress=advance, on_problem=problems)
    show(found.score, as_json, found.table)
    if found.remark is not None and not as_json:
        tell(found.remark)


def _model_and_text(run: str | None, path: str | None, text: str | None) -> tuple[Path, str | list[str]]:
    """Which model is measured, and on what; what is alone is the text, since without one nothing is measured."""
    if text is not None:
        if path is not None:
            raise UsageError("--text is the text itself, instead of a PATH; give one of them")
        if os.path.isfile(text):  # noqa: PTH113 - a text may be too long for a path
            raise UsageError(
                "--text is the text itself, and {text} is a file; to measure on that leave --text out", text=text
            )
        return place(run), [text]
    if path is not None:
        return place(run), path
    if run is None or run == NAME or (Path(run) / "config.json").is_file():
        raise UsageError("evaluate needs PATH, a text to measure on, or --text; see kotha evaluate --help")
    return BOX, run
