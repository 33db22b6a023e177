"""How well texts were told apart, for people: a table, and one offline page with the confusion matrix."""

from kotha.evaluation.classification import ClassificationScore
from kotha.i18n.message import Plural, Text
from kotha.i18n.wording import counted
from kotha.report.page import Page
from kotha.report.table import Table

# So many classes are told of at the terminal; of more, the hardest.
_HARDEST = 20


def classes_table(score: ClassificationScore, name: str) -> Table:
    """The model beside its baselines, and below it each class."""
    rows = {name: {"accuracy": score.accuracy, "macro_f1": score.macro_f1}, **score.baselines}
    cells = [[each, f"{figures['accuracy']:.4f}", f"{figures['macro_f1']:.4f}"] for each, figures in rows.items()]
    few = len(score.classes) <= _HARDEST
    shown = score.classes if few else sorted(score.classes, key=lambda each: each.f1)[:_HARDEST]
    remarks = [
        f"{each.label}: F1 {each.f1:.3f} (precision {each.precision:.3f}, recall {each.recall:.3f}) of "
        f"{counted(each.support, 'example')}"
        for each in shown
    ]
    if not few:
        remarks.append(f"These are the hardest of {len(score.classes):,} classes.")
        remarks += [f"{label} was taken for {other}: {count:,}" for label, other, count in score.mistaken]
    if score.seen:
        remarks.append(f"It has learned from {score.seen:,} of these, so these figures are too good.")
    return Table(
        Plural("{n} example", "{n:,} examples", n=score.examples),
        ["", "accuracy", "macro-F1"],
        cells,
        remarks,
        labels=[0],
    )


def classes_page(score: ClassificationScore, title: Text, lead: Text = "", called: str = "text") -> str:
    """The page: what came out, the confusion matrix, each class by itself, and what others reach."""
    page = Page(title, lead)
    page.headline(
        [
            (f"{score.macro_f1:.3f}", "macro-F1: the mean over classes, rare ones as much as common ones"),
            (f"{score.accuracy:.1%}", f"of {counted(score.examples, f'unseen {called}')} told right (accuracy)"),
        ]
    )
    if score.confusion:
        _matrix(page, score, called)
    page.heading("Each class by itself", "প্রতিটি শ্রেণি")
    cells = [
        [each.label, f"{each.precision:.3f}", f"{each.recall:.3f}", f"{each.f1:.3f}", f"{each.support:,}"]
        for each in score.classes
    ]
    page.table(["class", "precision", "recall", "F1", "examples"], cells, {})
    if score.baselines:
        page.heading("Beside what is simpler", "সহজ উপায়ের পাশে")
        compared = {"this model": {"accuracy": score.accuracy, "macro_f1": score.macro_f1}, **score.baselines}
        best = max(range(len(compared)), key=lambda place: list(compared.values())[place]["macro_f1"])
        figures = [[name, f"{each['accuracy']:.3f}", f"{each['macro_f1']:.3f}"] for name, each in compared.items()]
        page.table(["", "accuracy", "macro-F1"], figures, {(best, 2): "best"}, labels=[0])
    return page.html(f"Made by Kotha. Nothing of these {called}s was learned from or chosen by.")


def _matrix(page: Page, score: ClassificationScore, called: str) -> None:
    page.heading("Which are taken for which", "কোনটিকে কোনটি ভাবা হয়েছে")
    page.paragraph(
        f"A row is what the {called}s are, a column is what the model said; the darker, the larger the share of the "
        "row. What stands on the diagonal was told right."
    )
    totals = [max(1, sum(row)) for row in score.confusion]
    shares = [[count / total for count in row] for row, total in zip(score.confusion, totals, strict=True)]
    rows = [[label, *(f"{count:,}" for count in row)] for label, row in zip(score.labels, score.confusion, strict=True)]
    page.matrix(["is \\ said", *score.labels], rows, shares)
