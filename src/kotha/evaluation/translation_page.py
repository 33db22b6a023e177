"""How close translations came, for people: a table, and one offline page with what was written."""

from kotha.evaluation.translation import TranslationScore
from kotha.i18n.message import Plural, Text
from kotha.i18n.wording import counted
from kotha.report.page import Page
from kotha.report.table import Table
from kotha.text.corpus.pairs import TextPairs

_SHOWN = 100
_LONGEST_RUN = 4  # of words, that BLEU counts


def translation_table(score: TranslationScore, name: str) -> Table:
    """Both figures beside what remembering reaches, and how they were measured."""
    cells = [[name, f"{score.bleu:.2f}", f"{score.chrf:.2f}"]]
    cells += [[other, f"{each['bleu']:.2f}", f"{each['chrf']:.2f}"] for other, each in score.baselines.items()]
    remarks = [f"BLEU: {score.bleu_signature}", f"chrF++: {score.chrf_signature}"]
    if score.fields is not None:
        remarks.append(f"Translated from {score.fields[0]!r}, compared with {score.fields[1]!r}.")
    if score.seen:
        remarks.append(f"It has learned from {score.seen:,} of these pairs, so these figures are too good.")
    if score.translations and all(len(text.split()) < _LONGEST_RUN for text in score.translations):
        remarks.append("BLEU counts runs of up to four words, and no translation has four; chrF++ says more here.")
    return Table(Plural("{n} pair", "{n:,} pairs", n=score.sentences), ["", "BLEU", "chrF++"], cells, remarks)


def translations_page(score: TranslationScore, pairs: TextPairs, title: Text, lead: Text = "") -> str:
    """The page: the figures, and each source with what the model made of it and what a person did."""
    page = Page(title, lead)
    page.headline(
        [
            (f"{score.chrf:.1f}", "chrF++: runs of letters and words in common with a person's translation, of 100"),
            (f"{score.bleu:.1f}", "BLEU: runs of words in common, of 100"),
        ]
    )
    page.heading("What it wrote", "মডেলটি যা লিখেছে")
    rows = list(zip(pairs.sources, score.translations, pairs.targets, strict=True))
    if len(rows) > _SHOWN:
        page.paragraph(f"The first {_SHOWN} of {counted(len(rows), 'pair')}.")
    words = {(row, column): "words" for row in range(len(rows[:_SHOWN])) for column in range(3)}
    page.table(["source", "this model", "a person"], rows[:_SHOWN], words)
    if score.baselines:
        page.heading("Beside what is simpler", "সহজ উপায়ের পাশে")
        compared = {"this model": {"bleu": score.bleu, "chrf": score.chrf}, **score.baselines}
        figures = [[name, f"{each['bleu']:.2f}", f"{each['chrf']:.2f}"] for name, each in compared.items()]
        page.table(["", "BLEU", "chrF++"], figures, {}, labels=[0])
    page.heading("How it was measured", "কীভাবে মাপা হয়েছে")
    page.settings([("BLEU", score.bleu_signature), ("chrF++", score.chrf_signature)])
    return page.html("Made by Kotha. Figures can be compared where the signatures are equal.")
