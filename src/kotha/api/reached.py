"""What a run from examples reached on the part that was held out of them."""

from typing import NamedTuple

from kotha.api.run import Run
from kotha.i18n.message import Message
from kotha.report.table import Table


class Reached(NamedTuple):
    """The score as a table; the figures of the summary that it tells; where its page is, in a sentence."""

    table: Table
    names: set[str]
    page: Message | None = None


def reached(run: Run) -> Reached | None:
    """What a translator, a classifier or a model that answers reached; None for a run from a data folder."""
    summary, name = run.summary, str(run.path)
    if "bleu" in summary:
        from kotha.evaluation.translation import TranslationScore
        from kotha.evaluation.translation_page import translation_table

        translated = TranslationScore.of_summary(summary)
        return Reached(translation_table(translated, name), set(translated.to_dict()))
    if "confusion" in summary:
        from kotha.evaluation.classes_page import classes_table
        from kotha.evaluation.classification import ClassificationScore
        from kotha.finetune.classify import PAGE

        told, page = ClassificationScore.of_summary(summary), run.path / PAGE
        # Of very many classes no matrix is kept; the page has them one by one.
        where = Message("confusion matrix: {path} (open it in a browser)", path=page)
        return Reached(
            classes_table(told, name),
            set(told.to_dict()),
            where if told.confusion else Message("page in {path}", path=page),
        )
    if "taught" in summary:
        from kotha.evaluation.instructions import InstructionScore, instructions_table

        right = InstructionScore.of_summary(summary)
        return Reached(instructions_table(right, name, summary["before"]["right"]), set(right.to_dict()))
    return None
