"""How well texts were told apart, for people: a table, and one offline page with the confusion matrix."""

from kotha.evaluation.classification import ClassificationScore
from kotha.i18n.message import Message, Plural, Text
from kotha.report.document import Block, Confusion, Heading, Headline, Paragraph, Report
from kotha.report.table import Table

# So many classes are told of at the terminal; of more, the hardest.
_HARDEST = 20
_ACCURACY, _MACRO_F1 = Message("accuracy"), Message("macro-F1")


def classes_table(score: ClassificationScore, name: str) -> Table:
    """The model beside its baselines, and below it each class."""
    few = len(score.classes) <= _HARDEST
    shown = score.classes if few else sorted(score.classes, key=lambda each: each.f1)[:_HARDEST]
    remarks: list[Text] = [
        Message(
            "{label}: F1 {f1:.3f} (precision {precision:.3f}, recall {recall:.3f}) of {examples}",
            label=each.label,
            f1=each.f1,
            precision=each.precision,
            recall=each.recall,
            examples=Plural("{n} example", "{n:,} examples", n=each.support),
        )
        for each in shown
    ]
    if not few:
        remarks.append(Message("These are the hardest of {n:,} classes.", n=len(score.classes)))
        remarks += [
            Message("{label} was taken for {other}: {n:,}", label=label, other=other, n=count)
            for label, other, count in score.mistaken
        ]
    if score.seen:
        remarks.append(Message("It has learned from {n:,} of these, so these figures are too good.", n=score.seen))
    title = Plural("{n} example", "{n:,} examples", n=score.examples)
    return Table(title, ["", _ACCURACY, _MACRO_F1], score.compared(name, 4), remarks)


def classes_document(score: ClassificationScore, title: Text, lead: Text = "", called: str = "text") -> Report:
    """The page: what came out, the confusion matrix, each class by itself, and what others reach.

    ``called`` says what was told apart: text or image.
    """
    images, n = called == "image", score.examples
    right: Text = Plural("of {n} unseen text told right (accuracy)", "of {n:,} unseen texts told right (accuracy)", n=n)
    footer = Message("Nothing of these texts was learned from or chosen by.")
    if images:
        one, many = "of {n} unseen image told right (accuracy)", "of {n:,} unseen images told right (accuracy)"
        right, footer = Plural(one, many, n=n), Message("Nothing of these images was learned from or chosen by.")
    macro = Message("macro-F1: the mean over classes, rare ones as much as common ones")
    blocks: list[Block] = [Headline([(f"{score.macro_f1:.3f}", macro), (f"{score.accuracy:.1%}", right)])]
    blocks += _matrix(score, images) if score.confusion else []
    cells = [
        [each.label, f"{each.precision:.3f}", f"{each.recall:.3f}", f"{each.f1:.3f}", f"{each.support:,}"]
        for each in score.classes
    ]
    header: list[Text] = [Message("class"), Message("precision"), Message("recall"), "F1", Message("examples")]
    blocks += [Heading(Message("Each class by itself")), Table("", header, cells)]
    if score.baselines:
        rows = score.compared(Message("this model"), 3)
        reached = [score.macro_f1, *(each["macro_f1"] for each in score.baselines.values())]
        best = {(reached.index(max(reached)), 2): "best"}
        blocks.append(Heading(Message("Compared with what is simpler")))
        blocks.append(Table("", ["", _ACCURACY, _MACRO_F1], rows, marks=best))
    return Report(title, [lead], blocks, [Message("Made by Kotha."), footer])


def _matrix(score: ClassificationScore, images: bool) -> list[Block]:
    how = Message(
        "A row is what the texts are, a column is what the model said; the darker, the larger the share of the row."
    )
    if images:
        how = Message(
            "A row is what the images are, a column is what the model said; the darker, the larger the share of the "
            "row."
        )
    totals = [max(1, sum(row)) for row in score.confusion]
    shares = [[round(n / total, 4) for n in row] for row, total in zip(score.confusion, totals, strict=True)]
    cells = [[f"{n:,}" for n in row] for row in score.confusion]
    return [
        Heading(Message("Which are taken for which")),
        Paragraph([how, Message("What stands on the diagonal was told right.")]),
        Confusion(Message("is \\ said"), list(score.labels), list(score.labels), cells, shares),
    ]
