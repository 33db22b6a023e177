"""The table of a score, by its kind, and what a run from examples reached."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from kotha.api.model import LanguageModel
from kotha.api.run import Run
from kotha.evaluation.classification import ClassificationScore, classes_table
from kotha.evaluation.instructions import InstructionScore, instructions_table
from kotha.evaluation.masked_words import MaskedScore, masked_table
from kotha.evaluation.perplexity import TextScore, score_table
from kotha.evaluation.robustness import Robustness, robustness_table
from kotha.evaluation.translation import TranslationScore, translation_table
from kotha.finetune.classify import PAGE
from kotha.i18n.message import Message, Option
from kotha.report.table import Table
from kotha.storage import bundled

_TABLES: dict[type, Callable[[Any, str], Table]] = {
    ClassificationScore: classes_table,
    InstructionScore: instructions_table,
    MaskedScore: masked_table,
    Robustness: robustness_table,
    TextScore: score_table,
    TranslationScore: translation_table,
}


class ShownScore(NamedTuple):
    """The figures, a table of them, and what is to be said beside."""

    score: Any
    table: Table
    remark: Message | None = None


def shown(lm: LanguageModel, score: Any) -> ShownScore:
    """What ``evaluate`` has measured, as it is shown; of a harness task a dict."""
    name = bundled.title(lm.path or Path())
    if isinstance(score, dict):
        rows = [[key, f"{value:.4f}" if isinstance(value, float) else str(value)] for key, value in score.items()]
        return ShownScore(score, Table(name, ["", ""], rows))
    remark = None
    if isinstance(score, TextScore) and not score.baselines:
        template = "no n-gram baselines; name a data folder with {baselines}"
        remark = Message(template, baselines=Option("baselines"))
    elif isinstance(score, ClassificationScore) and not score.baselines:
        remark = Message("no baselines; they need the training examples, which are in the run folder")
    return ShownScore(score, _TABLES[type(score)](score, name), remark)


def reached(run: Run) -> ShownScore | None:
    """What a translator, a classifier or a model that answers reached on what was held out of its examples, and where
    its page is; None for a run from a data folder."""
    summary, name = run.summary, str(run.path)
    if "bleu" in summary:
        translated = TranslationScore.of_summary(summary)
        return ShownScore(translated, translation_table(translated, name))
    if "confusion" in summary:
        classes, page = ClassificationScore.of_summary(summary), run.path / PAGE
        # Of very many classes no matrix is kept; the page has them one by one.
        matrix = Message("confusion matrix: {path} (open it in a browser)", path=page)
        where = matrix if classes.confusion else Message("page in {path}", path=page)
        return ShownScore(classes, classes_table(classes, name), where)
    if "taught" in summary:
        right = InstructionScore.of_summary(summary)
        return ShownScore(right, instructions_table(right, name, summary["before"]["right"]))
    return None
