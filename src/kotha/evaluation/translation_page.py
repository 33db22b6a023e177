"""How close translations came, for people: a table, and one offline page with what was written."""

from kotha.evaluation.translation import TranslationScore
from kotha.i18n.message import Message, Plural, Text
from kotha.report.document import Block, Heading, Headline, Paragraph, Report, Settings
from kotha.report.table import Table
from kotha.text.corpus.pairs import TextPairs

_SHOWN = 100
_LONGEST_RUN = 4  # of words, that BLEU counts


def translation_table(score: TranslationScore, name: str) -> Table:
    """Both figures beside what remembering reaches, and how they were measured."""
    remarks: list[Text] = [f"BLEU: {score.bleu_signature}", f"chrF++: {score.chrf_signature}"]
    if score.fields is not None:
        source, target = score.fields
        told = "Translated from {source!r}, compared with {target!r}."
        remarks.append(Message(told, source=source, target=target))
    if score.seen:
        told = "It has learned from {n:,} of these pairs, so these figures are too good."
        remarks.append(Message(told, n=score.seen))
    if score.translations and all(len(text.split()) < _LONGEST_RUN for text in score.translations):
        told = "BLEU counts runs of up to four words, and no translation has four; chrF++ says more here."
        remarks.append(Message(told))
    return Table(_pairs(score.sentences), ["", "BLEU", "chrF++"], score.compared(name, 2), remarks)


def translations_document(score: TranslationScore, pairs: TextPairs, title: Text, lead: Text = "") -> Report:
    """The page: the figures, and each source with what the model made of it and what a person did."""
    chrf = Message("chrF++: runs of letters and words in common with a person's translation, of 100")
    bleu = Message("BLEU: runs of words in common, of 100")
    blocks: list[Block] = [Headline([(f"{score.chrf:.1f}", chrf), (f"{score.bleu:.1f}", bleu)])]
    blocks.append(Heading(Message("What it wrote")))
    rows = list(zip(pairs.sources, score.translations, pairs.targets, strict=True))
    if len(rows) > _SHOWN:
        blocks.append(Paragraph(Message("The first {n} of {pairs}.", n=_SHOWN, pairs=_pairs(len(rows)))))
    words = {(row, column): "words" for row in range(len(rows[:_SHOWN])) for column in range(3)}
    header = [Message("source"), Message("this model"), Message("a person")]
    blocks.append(Table("", header, rows[:_SHOWN], marks=words))
    if score.baselines:
        blocks.append(Heading(Message("Compared with what is simpler")))
        blocks.append(Table("", ["", "BLEU", "chrF++"], score.compared(Message("this model"), 2)))
    blocks.append(Heading(Message("How it was measured")))
    blocks.append(Settings([("BLEU", score.bleu_signature), ("chrF++", score.chrf_signature)]))
    compared = Message("Figures can be compared where the signatures are equal.")
    return Report(title, [lead], blocks, [Message("Made by Kotha."), compared])


def _pairs(n: int) -> Plural:
    return Plural("{n} pair", "{n:,} pairs", n=n)
