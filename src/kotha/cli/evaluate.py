"""``kotha evaluate``: evaluate a model on text, compared with baselines."""

import os
from typing import Annotated

from cyclopts import Parameter

from kotha.api.options import EvaluateOptions
from kotha.cli.options import Device, FlatMany, RequiredRun, TextItself
from kotha.cli.terminal import Output, corpus_listeners
from kotha.errors import UsageError


def evaluate(
    run: RequiredRun,
    path: Annotated[str | None, Parameter(name="PATH")] = None,
    /,
    *,
    text: TextItself = None,
    options: Annotated[EvaluateOptions, FlatMany] = EvaluateOptions(),  # noqa: B008 - frozen
    device: Device = "auto",
) -> Output:
    """Evaluate a model on text: loss, perplexity, bits per byte and per character, and overlap with training data.

    Each document is read from its start, in windows that advance by --stride; every token is scored once. The scores
    are compared with n-gram baselines.

    Translation models are evaluated with BLEU and chrF++ on a table of sentence pairs; `--pair en bn` specifies the two
    fields of the table. A classifier is scored on labelled texts, compared with always predicting the most frequent
    class and with logistic regression on TF-IDF, or on labelled images, compared with the nearest neighbour. A BERT
    model is scored on masked words and on pairs of passages. For a file of questions with answers, or of messages, the
    score is accuracy: the share of correct answers.

    --perturb also measures how much the scores drop when the text is perturbed.

    Example: `kotha evaluate run data`

    Args:
        path: Text file, folder or data folder; or an lm-evaluation-harness task (.yaml).
    """
    import kotha
    from kotha.api.scores import present_score

    if path is None and text is None and os.path.isfile(run):  # noqa: PTH113 - see below
        template = "{run} is a file; put a model before it, such as box, the bundled model: kotha evaluate box {run}"
        raise UsageError(template, run=run)
    if path is None and text is None:
        raise UsageError("evaluate needs PATH or --text; see kotha evaluate --help")
    if path is not None and text is not None:
        raise UsageError("give either PATH or --text, not both")
    if text is not None and os.path.isfile(text):  # noqa: PTH113 - a text may be too long for a path
        raise UsageError(
            "--text takes the text itself, but {text} is a file; to evaluate on the file, omit --text", text=text
        )
    if options.pair is not None and text is not None:
        raise UsageError("--pair names two fields in a table of pairs; give a PATH instead of --text")
    lm = kotha.load(run, device)
    with corpus_listeners() as listeners:
        presented = present_score(lm, lm.evaluate(path or [text or ""], **vars(options), **listeners))
    return Output(presented.score, presented.table, remarks=[] if presented.remark is None else [presented.remark])
