"""``kotha evaluate``: how well a model foretells a text, beside what counting reaches."""

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from kotha.cli.flags import BOX, Device, Field, OnErrors, Pair, RunName, Several, TextItself, group
from kotha.cli.naming import NAME, place
from kotha.cli.terminal import Output, listening
from kotha.errors import UsageError


@group
class Measuring:
    """How it is measured."""

    context: int | None = None
    """Tokens in a window; left out: the model's context."""
    stride: int | None = None
    """Tokens a window moves on by; left out: half the context."""
    baselines: str = "auto"
    """Data folder to count n-grams in, or none; auto: the one the run was trained on."""
    split: str = "validation"
    """Split of a data folder to measure on."""
    field: Field = "text"
    pair: Pair = None
    perturb: Several = ()
    """Also on the text with noise: spelling, typos, latin, digits, punctuation, or a file."""
    share: float = 0.2
    """Share of the words that --perturb changes."""
    errors: OnErrors = "stop"


def evaluate(
    run: RunName = None,
    path: Annotated[str | None, Parameter(name="PATH")] = None,
    /,
    *,
    text: TextItself = None,
    measuring: Measuring = Measuring(),  # noqa: B008 - frozen
    device: Device = "auto",
) -> Output:
    """Measure a model on a text: loss, perplexity, bits per byte and per character; say whether it learned from it.

    Each document is read from its start, in windows that move on by the stride; every token is scored once. A model
    that translates is measured by BLEU and chrF++ on a table of pairs: their fields are guessed, or named by --pair en
    bn. One that names classes is measured on texts with labels, beside the commonest class and TF-IDF with logistic
    regression, or on images beside the nearest neighbour. A BERT guesses hidden words and judges pairs of stretches,
    beside what counting reaches. A file of questions with answers (or messages) is asked: how
    many are answered right. With --perturb: how far these figures fall when the text is written otherwise.

    Args:
        path: A text: a file, folder or data folder; or a harness task (.yaml).
    """
    import kotha
    from kotha.api.scores import measure

    folder, held_out = _model_and_text(run, path, text)
    if measuring.pair is not None and text is not None:
        raise UsageError("--pair names fields of a file with pairs; give a PATH instead of --text")
    asked = {**vars(measuring), "baselines": None if measuring.baselines == "none" else measuring.baselines}
    with listening() as heard:
        found = measure(kotha.load(folder, device), held_out, **asked, **heard)
    return Output(found.score, found.table, remarks=[] if found.remark is None else [found.remark])


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
