"""Score tables for each kind of score, and the scores of runs trained on examples."""

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


class PresentedScore(NamedTuple):
    """A score with its table and a remark."""

    score: Any
    table: Table
    remark: Message | None = None


def present_score(lm: LanguageModel, score: Any) -> PresentedScore:
    """Prepare the result of ``evaluate`` for display; for a harness task the result is a dict."""
    name = bundled.title(lm.path or Path())
    if isinstance(score, dict):
        rows = [[key, f"{value:.4f}" if isinstance(value, float) else str(value)] for key, value in score.items()]
        return PresentedScore(score, Table(name, ["", ""], rows))
    remark = None
    if isinstance(score, TextScore) and not score.baselines:
        template = "no n-gram baselines; specify a data folder with {baselines}"
        remark = Message(template, baselines=Option("baselines"))
    elif isinstance(score, ClassificationScore) and not score.baselines:
        remark = Message(
            "no baselines: computing them requires the training examples, which only a run folder contains"
        )
    return PresentedScore(score, _TABLES[type(score)](score, name), remark)


def summary_score(run: Run) -> PresentedScore | None:
    """Return the held-out score of a translator, classifier or instruction-tuned model, or None for other runs."""
    summary, name = run.summary, str(run.path)
    if "bleu" in summary:
        translated = TranslationScore.of_summary(summary)
        return PresentedScore(translated, translation_table(translated, name))
    if "confusion" in summary:
        classes, page = ClassificationScore.of_summary(summary), run.path / PAGE
        # If there are very many classes, no matrix is saved; the page lists the classes.
        matrix_remark = Message("confusion matrix: {path} (open it in a browser)", path=page)
        remark = matrix_remark if classes.confusion else Message("page saved to {path}", path=page)
        return PresentedScore(classes, classes_table(classes, name), remark)
    if summary.keys() & {"instruction_tuned", "taught"}:  # the former name
        answers, before = InstructionScore.of_summary(summary), summary["before"]
        share = before["exact_match"] if "exact_match" in before else before["right"]  # the former name
        return PresentedScore(answers, instructions_table(answers, name, share))
    return None
