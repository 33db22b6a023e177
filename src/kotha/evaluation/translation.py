"""Translation scores by sacrebleu: BLEU and chrF++.

BLEU (https://aclanthology.org/P02-1040) counts the word n-grams that translation and reference share, and chrF++
(https://aclanthology.org/W17-4770) counts character and word n-grams, which is more suitable for an inflected language
such as Bangla. Scores are comparable only with the same word tokenization, case handling and references, so each comes
with sacrebleu's signature (https://aclanthology.org/W18-6319).

The baseline is a translation memory (nearest neighbour): the translation of a source is the target of the training
source that shares the most words with it, weighted by rarity.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kotha.artifacts.model_folder import Bundle
from kotha.errors import DataError
from kotha.evaluation.result import Measurement
from kotha.generation.beam import translate
from kotha.i18n.message import Message, OnProgress, Plural, Text
from kotha.model.seq2seq import Seq2Seq
from kotha.report.document import Block, Heading, Headline, Paragraph, Report, Settings
from kotha.report.table import Table
from kotha.text.corpus.pairs import TextPairs

# chrF++ is chrF with word n-grams, up to bigrams.
_WORDS = 2


@dataclass(frozen=True, repr=False)
class TranslationScore(Measurement):
    """BLEU and chrF++ from 0 to 100, each with its signature."""

    left_out, figures = ("translations",), ("bleu", "chrf")

    bleu: float
    bleu_signature: str
    chrf: float  # chrF++
    chrf_signature: str
    sentences: int
    translations: tuple[str, ...] = ()  # as scored
    fields: tuple[str, str] | None = None  # source and target field, if the pairs came from a table
    seen: int | None = None  # pairs whose source or target is in the training data; None if unknown
    baselines: dict[str, dict[str, float]] = field(default_factory=dict)  # by name: bleu, chrf


def score_translations(translations: Sequence[str], references: Sequence[str]) -> TranslationScore:
    """Compare translations with references, sentence by sentence."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    if not translations:
        raise DataError("no translations to compare; give translations and a reference for each")
    assert len(references) == len(translations), "need one reference per translation"
    figures: dict[str, Any] = {}
    for name, metric in {"bleu": BLEU(), "chrf": CHRF(word_order=_WORDS)}.items():
        found = metric.corpus_score(list(translations), [list(references)])
        figures |= {name: float(found.score), f"{name}_signature": str(metric.get_signature())}
    return TranslationScore(**figures, sentences=len(translations), translations=tuple(translations))


def evaluate_pairs(
    bundle: Bundle,
    pairs: TextPairs,
    learned: TextPairs | None = None,
    on_progress: OnProgress | None = None,
) -> TranslationScore:
    """Translate the sources and score the translations.

    If ``learned`` (the training pairs) is given, score the baseline too.
    """
    assert isinstance(bundle.model, Seq2Seq) and bundle.tokenizer is not None, "not a translation model"
    found = translate(bundle.model, bundle.tokenizer, pairs.sources, on_progress=on_progress)
    score = score_translations(found, pairs.targets)
    score = replace(score, fields=(pairs.source_field, pairs.target_field))
    if learned is None:
        return score
    known = {*learned.sources}, {*learned.targets}
    seen = sum(
        source in known[0] or target in known[1] for source, target in zip(pairs.sources, pairs.targets, strict=True)
    )
    remembered = score_translations(remembered_targets(learned, pairs.sources), pairs.targets)
    baselines = {"nearest neighbour": {"bleu": remembered.bleu, "chrf": remembered.chrf}}
    return replace(score, seen=seen, baselines=baselines)


def remembered_targets(learned: TextPairs, sources: Sequence[str]) -> list[str]:
    """Return for each source the target of the most similar training source, by shared words weighted by rarity.

    >>> learned = TextPairs(("a red house", "a blue river"), ("একটি লাল বাড়ি", "একটি নীল নদী"))
    >>> remembered_targets(learned, ["the river is blue"])
    ['একটি নীল নদী']
    """
    known = [set(source.lower().split()) for source in learned.sources]
    positions = defaultdict[str, list[int]](list)
    for index, words in enumerate(known):
        for word in words:
            positions[word].append(index)
    rarity = {word: math.log(1 + len(learned) / len(found)) for word, found in positions.items()}
    sizes = np.array([sum(rarity[word] for word in words) for words in known])
    answers = []
    for source in sources:
        words, shared = set(source.lower().split()), np.zeros(len(learned))
        for word in words & positions.keys():
            shared[positions[word]] += rarity[word]
        size = sum(rarity.get(word, 0.0) for word in words)
        similarity = shared / np.maximum(size + sizes - shared, 1e-9)  # weighted Jaccard index
        answers.append(learned.targets[int(similarity.argmax())])
    return answers


# -- rendering -----------------------------------------------------------------------------------------------------

_SHOWN = 100
_LONGEST_RUN = 4  # the longest n-grams that BLEU counts


def translation_table(score: TranslationScore, name: str) -> Table:
    """Return a table of both scores and those of the baseline, with the signatures."""
    remarks: list[Text] = [f"BLEU: {score.bleu_signature}", f"chrF++: {score.chrf_signature}"]
    if score.fields is not None:
        template = "Translated from {source!r}, compared with {target!r}."
        remarks.append(Message(template, **dict(zip(("source", "target"), score.fields, strict=True))))
    if score.seen:
        remarks.append(
            Message("The model was trained on {n:,} of these pairs, so its scores are too high.", n=score.seen)
        )
    if score.translations and all(len(text.split()) < _LONGEST_RUN for text in score.translations):
        short = "BLEU counts n-grams of up to four words, and no translation has four words; prefer chrF++ here."
        remarks.append(Message(short))
    return Table(_pairs(score.sentences), ["", "BLEU", "chrF++"], score.compared(name, 2), remarks)


def translations_document(score: TranslationScore, pairs: TextPairs, title: Text, lead: Text = "") -> Report:
    """Return a page with the scores, and each source with its translation and reference."""
    chrf = Message("chrF++: character and word n-grams shared with the reference translation, out of 100")
    bleu = Message("BLEU: word n-grams shared with the reference translation, out of 100")
    blocks: list[Block] = [Headline([(f"{score.chrf:.1f}", chrf), (f"{score.bleu:.1f}", bleu)])]
    blocks.append(Heading(Message("Translations")))
    rows = list(zip(pairs.sources, score.translations, pairs.targets, strict=True))
    if len(rows) > _SHOWN:
        blocks.append(Paragraph(Message("The first {n} of {pairs}.", n=_SHOWN, pairs=_pairs(len(rows)))))
    shown = rows[:_SHOWN]
    words = {(row, column): "words" for row in range(len(shown)) for column in range(3)}
    blocks.append(Table("", [Message("source"), Message("this model"), Message("reference")], shown, marks=words))
    if score.baselines:
        blocks.append(Heading(Message("Compared with baselines")))
        blocks.append(Table("", ["", "BLEU", "chrF++"], score.compared(Message("this model"), 2)))
    signatures: list[tuple[str, Text]] = [("BLEU", score.bleu_signature), ("chrF++", score.chrf_signature)]
    blocks += [Heading(Message("How it was measured")), Settings(signatures)]
    compared = Message("Scores are comparable only if their signatures are equal.")
    return Report(title, [lead], blocks, [Message("Made by Kotha."), compared])


def _pairs(n: int) -> Plural:
    return Plural("{n} pair", "{n:,} pairs", n=n)
