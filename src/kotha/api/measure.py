"""A model measured on a text by what its family is measured by."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kotha.api import Place
from kotha.api.model import LanguageModel
from kotha.arguments import checked
from kotha.errors import UsageError
from kotha.i18n.message import Message, Option
from kotha.report.table import Table
from kotha.storage import bundled


class FamilyScore(NamedTuple):
    """The figures, a table of them, and what is to be said beside."""

    score: Any
    table: Table
    remark: Message | None = None


@checked()
def measure(lm: LanguageModel, text: Place | Sequence[str], perturb: Sequence[str] = (), **asked: Any) -> FamilyScore:
    """Measure a model on a file, a folder, a data folder, or a list of texts, by what its family is for.

    A GPT foretells, or answers a file of questions, or does a task of the harness (.yaml); a BERT guesses hidden words;
    a Seq2Seq translates; a classifier names classes. With ``perturb``: how far these figures fall when the text is
    written otherwise. ``asked`` are those of the method that measures: ``context``, ``stride``, ``baselines``,
    ``split``, ``field``, ``pair``, ``share``, ``errors``, ``on_progress``, ``on_problem``.
    """

    def given(*names: str) -> dict[str, Any]:
        return {name: asked[name] for name in (*names, "on_progress") if name in asked}

    family, name = lm.config.family, str(lm.path)
    path = os.fspath(text) if isinstance(text, str | os.PathLike) else None
    if asked.get("pair") is not None and not perturb and family != "seq2seq":
        raise UsageError(
            "{path} is a {family}; {pair} is for one that translates (seq2seq)",
            path=lm.path,
            family=family,
            pair=Option("pair"),
        )
    if perturb:
        from kotha.evaluation.robustness import robustness_table

        if path is None:
            raise UsageError("{perturb} changes a text in a file; give the file", perturb=Option("perturb"))
        fall = lm.evaluate_perturbed(path, perturb, **given("share", "pair", "errors"))
        return FamilyScore(fall, robustness_table(fall, name))
    if family == "seq2seq":
        from kotha.evaluation.translation_page import translation_table

        if path is None:
            raise UsageError("{path} translates; give a file of pairs of texts, or ask it to translate", path=lm.path)
        close = lm.evaluate_translations(path, **given("pair", "errors"))
        return FamilyScore(close, translation_table(close, name))
    if path is not None and path.endswith((".yaml", ".yml")):
        return _run_task(lm, path)
    if family == "vit" or family.endswith("-classifier"):
        return _measure_classes(lm, path, asked.get("baselines") == "auto", given("errors"))
    if family == "bert":
        from kotha.evaluation.masked import masked_table

        guessed = lm.evaluate_masked(text, **given("baselines", "split", "field", "errors"))
        return FamilyScore(guessed, masked_table(guessed, name))
    return _measure_text(lm, text, asked.get("field", "text") == "text", given)


def _measure_text(lm: LanguageModel, text: Any, may_ask: bool, given: Any) -> FamilyScore:
    """What a GPT foretells; or where a file holds questions, and no field was named, how many it answers right."""
    from kotha.evaluation.instructions import instructions_table
    from kotha.evaluation.text_score import score_table
    from kotha.text.corpus.dialogues import holds_dialogues

    asks = may_ask and lm.config.family == "gpt" and isinstance(text, str | os.PathLike)
    if asks and holds_dialogues(os.fspath(text)):
        right = lm.evaluate_instructions(text, **given("errors"))
        return FamilyScore(right, instructions_table(right, str(lm.path)))
    score = lm.evaluate(text, **given("context", "stride", "baselines", "split", "field", "errors", "on_problem"))
    table = score_table(score, bundled.title(lm.path or Path()))
    alone = Message("no n-grams to compare with; name a data folder with {baselines}", baselines=Option("baselines"))
    return FamilyScore(score, table, alone if score.baselines is None else None)


def _measure_classes(lm: LanguageModel, path: str | None, baselines: bool, given: dict[str, Any]) -> FamilyScore:
    """How well classes are told apart: texts of a table, or images."""
    from kotha.evaluation.classes_page import classes_table

    sees = lm.config.family == "vit"
    if path is None:
        what = Message("images, in a folder for each class") if sees else Message("texts with labels")
        raise UsageError("{path} names classes; give a file of {what}, or ask it to classify", path=lm.path, what=what)
    if sees:
        given.pop("errors", None)
    score = (lm.evaluate_images if sees else lm.evaluate_classes)(path, baselines=baselines, **given)
    alone = Message("nothing to compare with; the run has the examples that it needs")
    return FamilyScore(score, classes_table(score, str(lm.path)), None if score.baselines else alone)


def _run_task(lm: LanguageModel, path: str) -> FamilyScore:
    """What a task of the harness comes to."""
    from kotha.evaluation.harness import run_task

    found = run_task(*lm.gpt, path)
    rows = [[name, f"{value:.4f}" if isinstance(value, float) else str(value)] for name, value in found.items()]
    return FamilyScore(found, Table(path, ["", ""], rows))
