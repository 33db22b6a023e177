"""``kotha evaluate``: how well a model foretells a text, beside what counting reaches."""

import os
from typing import Annotated

from cyclopts import Parameter

from kotha.api.options import EvaluateOptions
from kotha.cli.options import Device, FlatMany, Run, TextItself
from kotha.cli.terminal import Output, listening
from kotha.errors import UsageError


def evaluate(
    run: Run,
    path: Annotated[str | None, Parameter(name="PATH")] = None,
    /,
    *,
    text: TextItself = None,
    options: Annotated[EvaluateOptions, FlatMany] = EvaluateOptions(),  # noqa: B008 - frozen
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
        path: Text file, folder or data folder; or an lm-evaluation-harness task (.yaml).
    """
    import kotha
    from kotha.api.scores import shown

    if path is None and text is None:
        raise UsageError("evaluate needs PATH or --text; see kotha evaluate --help")
    if path is not None and text is not None:
        raise UsageError("give either PATH or --text, not both")
    if text is not None and os.path.isfile(text):  # noqa: PTH113 - a text may be too long for a path
        raise UsageError(
            "--text takes the text itself, but {text} is a file; to evaluate on the file, omit --text", text=text
        )
    if options.pair is not None and text is not None:
        raise UsageError("--pair names the fields of a file of pairs; give a PATH instead of --text")
    lm = kotha.load(run, device)
    with listening() as heard:
        found = shown(lm, lm.evaluate(path or [text or ""], **vars(options), **heard))
    return Output(found.score, found.table, remarks=[] if found.remark is None else [found.remark])
