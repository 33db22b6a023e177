"""A model measured by what its family is measured by, and what a run from examples reached, each with its table."""

import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kotha.api import Place
from kotha.api.model import LanguageModel
from kotha.api.run import Run
from kotha.arguments import checked
from kotha.errors import UsageError
from kotha.evaluation.classification import ClassificationScore, classes_table
from kotha.evaluation.harness import run_task
from kotha.evaluation.instructions import InstructionScore, instructions_table
from kotha.evaluation.masked import MaskedScore, masked_table
from kotha.evaluation.perplexity import TextScore, score_table
from kotha.evaluation.robustness import Robustness, robustness_table
from kotha.evaluation.translation import TranslationScore, translation_table
from kotha.finetune.classify import PAGE
from kotha.i18n.message import Message, Option
from kotha.report.table import Table
from kotha.storage import bundled
from kotha.text.corpus.dialogues import holds_dialogues

_TABLES: dict[type, Callable[[Any, str], Table]] = {
    ClassificationScore: classes_table,
    InstructionScore: instructions_table,
    MaskedScore: masked_table,
    Robustness: robustness_table,
    TextScore: score_table,
    TranslationScore: translation_table,
}
# The method that measures a family, by the end of its name.
_WAYS = {
    "bert": "evaluate_masked",
    "classifier": "evaluate_classes",
    "gpt": "evaluate",
    "seq2seq": "evaluate_translations",
    "vit": "evaluate_images",
}
# What is measured on a file alone.
_FILES = {
    "classifier": Message("texts with labels"),
    "seq2seq": Message("pairs of texts"),
    "vit": Message("images, in a folder for each class"),
}


class ShownScore(NamedTuple):
    """The figures, a table of them, and what is to be said beside."""

    score: Any
    table: Table
    remark: Message | None = None


@checked()
def measure(lm: LanguageModel, text: Place | Sequence[str], perturb: Sequence[str] = (), **asked: Any) -> ShownScore:
    """Measure a model on a file, a folder, a data folder, or a list of texts, by what its family is for.

    A GPT foretells, or answers a file of questions, or does a task of the harness (.yaml); a BERT guesses hidden words;
    a Seq2Seq translates; a classifier names classes. With ``perturb``: how far these figures fall when the text is
    written otherwise. ``asked`` are those of the method that measures: ``context``, ``stride``, ``baselines``,
    ``split``, ``field``, ``pair``, ``share``, ``errors``, ``on_progress``, ``on_problem``.
    """
    family, name = lm.config.family.rpartition("-")[2], bundled.title(lm.path or Path())
    path = os.fspath(text) if isinstance(text, str | os.PathLike) else None
    if asked.get("pair") is not None and not perturb and family != "seq2seq":
        told = "{path} is a {family}; {pair} is for one that translates (seq2seq)"
        raise UsageError(told, path=name, family=lm.config.family, pair=Option("pair"))
    if path is None and (perturb or family in _FILES):
        what = _FILES.get(family, Message("texts"))
        raise UsageError("{path} is measured here on {what}; give a file of them", path=name, what=what)
    if path is not None and family != "seq2seq" and not perturb and path.endswith((".yaml", ".yml")):
        found = run_task(*lm.gpt, path)
        rows = [[key, f"{value:.4f}" if isinstance(value, float) else str(value)] for key, value in found.items()]
        return ShownScore(found, Table(path, ["", ""], rows))
    way = _WAYS[family]
    if perturb:
        way = "evaluate_perturbed"
    elif path is not None and family == "gpt" and asked.get("field", "text") == "text" and holds_dialogues(path):
        way = "evaluate_instructions"
    if way in ("evaluate_classes", "evaluate_images"):
        asked["baselines"] = asked.get("baselines") == "auto"
    evaluate = getattr(lm, way)
    given = {key: value for key, value in asked.items() if key in inspect.signature(evaluate).parameters}
    score = evaluate(text, *([perturb] if perturb else []), **given)
    remark = None
    if isinstance(score, TextScore) and not score.baselines:
        told = "no n-grams to compare with; name a data folder with {baselines}"
        remark = Message(told, baselines=Option("baselines"))
    elif isinstance(score, ClassificationScore) and not score.baselines:
        remark = Message("nothing to compare with; the run has the examples that it needs")
    return ShownScore(score, _TABLES[type(score)](score, name), remark)


def reached(run: Run) -> ShownScore | None:
    """What a translator, a classifier or a model that answers reached on what was held out of its examples, and where
    its page is; None for a run from a data folder."""
    summary, name = run.summary, str(run.path)
    if "bleu" in summary:
        translated = TranslationScore.of_summary(summary)
        return ShownScore(translated, translation_table(translated, name))
    if "confusion" in summary:
        told, page = ClassificationScore.of_summary(summary), run.path / PAGE
        # Of very many classes no matrix is kept; the page has them one by one.
        matrix = Message("confusion matrix: {path} (open it in a browser)", path=page)
        where = matrix if told.confusion else Message("page in {path}", path=page)
        return ShownScore(told, classes_table(told, name), where)
    if "taught" in summary:
        right = InstructionScore.of_summary(summary)
        return ShownScore(right, instructions_table(right, name, summary["before"]["right"]))
    return None
