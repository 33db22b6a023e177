"""How close translations come to those of people: BLEU and chrF++, by sacrebleu.

BLEU (https://aclanthology.org/P02-1040) counts runs of words in common, chrF++ (https://aclanthology.org/W17-4770) runs
of letters and words; for a language that inflects as Bangla does the second is the fairer one. Two figures can be
compared only where cutting into words, case and references were the same, so each comes with sacrebleu's signature
(https://aclanthology.org/W18-6319). Install it with ``pip install kotha[scores]``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kotha.bundle import Bundle
from kotha.errors import DataError, KothaError
from kotha.generate.translating import translate
from kotha.model.seq2seq import Seq2Seq
from kotha.text.corpus.documents import read_pairs
from kotha.text.corpus.problems import Errors
from kotha.wording import OnProgress

# chrF with words is chrF++: runs of up to two.
_WORDS = 2


@dataclass(frozen=True)
class TranslationScore:
    """Two figures from 0 to 100, each with what must agree before it is compared."""

    bleu: float
    bleu_signature: str
    chrf: float  # chrF++
    chrf_signature: str
    sentences: int


def score_translations(translations: Sequence[str], *references: Sequence[str]) -> TranslationScore:
    """Compare translations with one or several sets of references, sentence by sentence."""
    try:
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF
    except ImportError as error:
        raise KothaError("BLEU and chrF++ need sacrebleu: pip install 'kotha[scores]'") from error
    if not translations or not references:
        raise DataError("there is nothing to compare; give translations, and references for them")
    for each in references:
        if len(each) != len(translations):
            raise DataError(
                f"{len(translations):,} translations and {len(each):,} references; give a reference to each"
            )
    bleu, chrf = BLEU(), CHRF(word_order=_WORDS)
    given = [list(each) for each in references]
    found = bleu.corpus_score(list(translations), given), chrf.corpus_score(list(translations), given)
    return TranslationScore(
        bleu=float(found[0].score),
        bleu_signature=str(bleu.get_signature()),
        chrf=float(found[1].score),
        chrf_signature=str(chrf.get_signature()),
        sentences=len(translations),
    )


def evaluate_pairs(
    bundle: Bundle,
    path: str | Path,
    fields: tuple[str, str],
    *,
    errors: Errors = "stop",
    on_progress: OnProgress | None = None,
) -> TranslationScore:
    """Translate the sources at a path and compare with their targets; ``fields`` are the names of both."""
    assert isinstance(bundle.model, Seq2Seq) and bundle.tokenizer is not None, "asked of a model that translates"
    pairs = list(read_pairs([path], source_field=fields[0], target_field=fields[1], errors=errors))
    sources = [pair.source_text for pair in pairs]
    found = translate(bundle.model, bundle.tokenizer, sources, on_progress=on_progress)
    return score_translations(found, [pair.target_text for pair in pairs])
