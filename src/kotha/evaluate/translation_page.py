"""How close translations came, for people: a table, and one offline page with what was written."""

from kotha.evaluate.tables import Table
from kotha.evaluate.translation import TranslationScore
from kotha.page import Page
from kotha.text.corpus.pairs import TextPairs
from kotha.wording import counted

_SHOWN = 100


def translation_table(score: TranslationScore, name: str) -> Table:
    """Both figures, each with its signature."""
    cells = [
        [name, "BLEU", f"{score.bleu:.2f}", score.bleu_signature],
        ["", "chrF++", f"{score.chrf:.2f}", score.chrf_signature],
    ]
    remarks = []
    if score.fields is not None:
        remarks.append(f"Translated from {score.fields[0]!r}, compared with {score.fields[1]!r}.")
    if score.seen:
        remarks.append(f"It has learned from {score.seen:,} of these pairs, so these figures are too good.")
    return Table(counted(score.sentences, "pair"), ["", "", "score", "signature"], cells, remarks)


def translations_page(score: TranslationScore, pairs: TextPairs, title: str, lead: str = "") -> str:
    """The page: the figures, and each source with what the model made of it and what a person did."""
    page = Page(title, lead)
    page.headline(
        [
            (f"{score.chrf:.1f}", "chrF++: runs of letters and words in common with a person's translation, of 100"),
            (f"{score.bleu:.1f}", "BLEU: runs of words in common, of 100"),
        ]
    )
    page.heading("What it wrote", "যা সে লিখেছে")
    rows = list(zip(pairs.sources, score.translations, pairs.targets, strict=True))
    if len(rows) > _SHOWN:
        page.paragraph(f"The first {_SHOWN} of {counted(len(rows), 'pair')}.")
    page.table(["source", "this model", "a person"], rows[:_SHOWN], {})
    page.heading("How it was measured", "কীভাবে মাপা হয়েছে")
    page.settings([("BLEU", score.bleu_signature), ("chrF++", score.chrf_signature)])
    return page.html("Made by Kotha. Figures can be compared where the signatures are equal.")
