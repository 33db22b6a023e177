"""What a Seq2Seq does: it translates, and is measured on pairs."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from kotha.api import Place
from kotha.api.opened import OpenedModel
from kotha.arguments import checked
from kotha.errors import UsageError
from kotha.i18n.message import OnProgress
from kotha.model.seq2seq import Seq2Seq
from kotha.text.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from kotha.evaluation.translation import TranslationScore
    from kotha.inside.attention import Alignment
    from kotha.inside.view import View


class Translates(OpenedModel):
    """The methods of a model that reads a text and writes another."""

    @overload
    def translate(self, text: str, *, beams: int = 4, on_progress: OnProgress | None = None) -> str: ...

    @overload
    def translate(self, text: list[str], *, beams: int = 4, on_progress: OnProgress | None = None) -> list[str]: ...

    @checked()
    def translate(
        self, text: str | Sequence[str], *, beams: int = 4, on_progress: OnProgress | None = None
    ) -> str | list[str]:
        """A text, or each of a list, in the other language, by beam search; a Seq2Seq does this.

        >>> isinstance(kotha.load("seq2seq").translate("নদীর ধারে"), str)
        True
        """
        from kotha.generation.beam import translate

        several = [text] if isinstance(text, str) else list(text)
        found = translate(*self._seq2seq, several, beams, on_progress)
        return found[0] if isinstance(text, str) else found

    @checked()
    def alignment(
        self, text: str, *, target: str | None = None, layer: int | None = None, beams: int = 4
    ) -> "View[Alignment]":
        """Which pieces of a text its translation was written from: the cross-attention of one decoder layer.

        Without a ``target`` it is the model's own translation; ``layer`` counts from 0, and is the last but one if left
        out.

        >>> kotha.load("seq2seq").alignment("নদীর ধারে", target="মা").save("alignment.html")
        PosixPath('alignment.html')
        """
        from kotha.api.asked import translator
        from kotha.inside.attention import alignment_view

        return alignment_view(self.bundle, text, target, layer, translator(self.bundle, beams))

    @checked()
    def evaluate_translations(
        self,
        table: Place,
        *,
        pair: tuple[str, str] | None = None,
        errors: Literal["stop", "skip", "replace"] = "stop",
        on_progress: OnProgress | None = None,
    ) -> "TranslationScore":
        """Measure how close it comes to the translations of a table: BLEU and chrF++, with sacrebleu's signatures.

        ``pair`` names the fields of source and target; left out, they are those that the run learned from, or guessed.
        How many of the pairs the run has learned from is said too.

        >>> score = kotha.load("seq2seq").evaluate_translations("pairs.tsv", pair=("bn", "en"))
        >>> score.sentences, score.bleu_signature.split("|")[0]
        (12, 'nrefs:1')
        """
        from kotha.evaluation.translation import evaluate_pairs
        from kotha.finetune.pairs import TranslatePairs, fields_like
        from kotha.text.corpus.pairs import read_text_pairs

        self._seq2seq  # noqa: B018 - refuses before anything is read
        fields = pair or fields_like(self.path, Path(table))
        pairs = read_text_pairs(Path(table), *fields, errors=errors)
        return evaluate_pairs(self.bundle, pairs, self._learned(TranslatePairs()), on_progress)

    @property
    def _seq2seq(self) -> tuple[Seq2Seq, Tokenizer]:
        if not isinstance(self.model, Seq2Seq) or self.tokenizer is None:
            raise UsageError(
                "{called} is a {family} model; only a Seq2Seq translates",
                called=self._called,
                family=self.config.family,
            )
        return self.model, self.tokenizer
