"""A model measured: on text, on questions with known answers, on examples with labels, on pairs; and on noise."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kotha.api import Place
from kotha.api.opened import OpenedModel
from kotha.arguments import checked
from kotha.i18n.message import OnProgress
from kotha.model.bert import BERT
from kotha.model.gpt import GPT
from kotha.model.seq2seq import Seq2Seq
from kotha.text.choices import Errors
from kotha.text.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from kotha.evaluation.classification import ClassificationScore
    from kotha.evaluation.instructions import InstructionScore
    from kotha.evaluation.masked import MaskedScore
    from kotha.evaluation.perplexity import TextScore
    from kotha.evaluation.robustness import Robustness
    from kotha.evaluation.translation import TranslationScore
    from kotha.text.corpus.documents import OnProblem


class EvaluationMixin(OpenedModel):
    """The methods that measure a model."""

    @checked()
    def evaluate(
        self,
        text: Place | Sequence[str],
        *,
        context: int | None = None,
        stride: int | None = None,
        baselines: Place | None = None,
        split: str = "validation",
        field: str = "text",
        errors: Errors = "stop",
        on_progress: OnProgress | None = None,
        on_problem: "OnProblem | None" = None,
    ) -> "TextScore":
        """Measure how well it foretells a text: loss, perplexity, bits per byte; say whether it has learned from it.

        ``text`` is a file, a folder, a data folder (one ``split`` of it) or a list of documents. ``baselines`` is a
        data folder to count n-grams in, to compare with; auto is the one that the run was trained
        on, if it is still there.

        >>> score = lm.evaluate("stories.jsonl", context=32)
        >>> score.bits_per_byte < 8, str(score.seen.verdict)
        (True, '95% seen in training')
        >>> str(lm.evaluate(["নদীর ধারে একটি গ্রাম।"]).seen.verdict)
        'new'
        """
        from kotha.evaluation.contamination import look_up
        from kotha.evaluation.perplexity import count_baselines, evaluate_text

        model, tokenizer = self.gpt
        reading: Any = {"split": split, "field": field, "errors": errors, "on_problem": on_problem}
        held_out, data = self._held_out(tokenizer, text, **reading), self._data(baselines)
        score = evaluate_text(model, held_out, context_length=context, stride=stride, on_progress=on_progress)
        size = model.config.vocab_size
        beside = {} if data is None else count_baselines(data, held_out, size, on_progress=on_progress)
        return replace(score, seen=look_up(held_out, self.path), baselines=beside)

    @property
    def gpt(self) -> tuple[GPT, Tokenizer]:
        """Model and tokenizer of a GPT, the one family that foretells text; others are refused.

        >>> model, tokenizer = lm.gpt
        """
        return self._as(GPT)

    @checked()
    def evaluate_instructions(
        self,
        path: Place,
        *,
        instruction: str | None = None,
        answer: str | None = None,
        errors: Errors = "stop",
        on_progress: OnProgress | None = None,
    ) -> "InstructionScore":
        """Measure how many questions of a file it answers right; fields as ``adapt_instruct`` has them.

        >>> lm.evaluate_instructions("pairs.jsonl").examples
        12
        """
        from kotha.evaluation.instructions import evaluate_instructions
        from kotha.finetune.instruct import learned_from
        from kotha.text.corpus.dialogues import read_dialogues

        asked = read_dialogues(Path(path), instruction, answer, errors=errors)
        return evaluate_instructions(self.bundle, asked, learned_from(self.path), on_progress)

    @checked()
    def evaluate_masked(
        self,
        text: Place | Sequence[str],
        *,
        baselines: Place | None = "auto",
        split: str = "validation",
        field: str = "text",
        errors: Errors = "stop",
        on_progress: OnProgress | None = None,
    ) -> "MaskedScore":
        """Measure how many hidden words a BERT guesses, and how many pairs of stretches it judges right.

        ``text`` is a file, a folder, a data folder (one ``split`` of it) or a list of documents. Beside it what
        counting reaches in the data folder ``baselines``; auto is the one that the run was trained on, if it is there.

        >>> score = kotha.load("bert").evaluate_masked("stories.jsonl")
        >>> score.words_accuracy <= score.words_top5, score.pairs > 0
        (True, True)
        """
        from kotha.evaluation.masked import evaluate_masked
        from kotha.evaluation.perplexity import MAX_TOKENS
        from kotha.text.held_out import tokens_of

        model, tokenizer = self._as(BERT)
        held_out = self._held_out(tokenizer, text, split=split, field=field, errors=errors)
        data = self._data(baselines)
        learned = None if data is None else tokens_of(data["train"], MAX_TOKENS)
        return evaluate_masked(model, tokenizer, held_out, learned, on_progress)

    @checked()
    def evaluate_perturbed(
        self,
        path: Place,
        kinds: Sequence[str] = ("spelling", "typos", "latin"),
        *,
        share: float = 0.2,
        seed: int = 0,
        pair: tuple[str, str] | None = None,
        errors: Errors = "stop",
        on_progress: OnProgress | None = None,
    ) -> "Robustness":
        """Measure how far a score falls on the same text with spelling noise, slips, in Latin letters …

        A kind that is a file is another text of the same sort, for another domain or dialect. ``share`` is that of the
        words that are changed; ``pair`` names the fields of translations.

        >>> lm.evaluate_perturbed("stories.jsonl", ["latin"]).falls[0].after > 0
        True
        """
        from kotha.evaluation.robustness import evaluate_perturbed

        how: Any = {"share": share, "seed": seed, "errors": errors, "on_progress": on_progress}
        return evaluate_perturbed(self.bundle, Path(path), kinds, pair=pair or (None, None), **how)

    @checked()
    def evaluate_classes(
        self,
        table: Place,
        *,
        text: str | None = None,
        label: str | None = None,
        baselines: bool = True,
        errors: Errors = "stop",
        on_progress: OnProgress | None = None,
    ) -> "ClassificationScore":
        """Measure how well it tells the texts of a table apart: accuracy, macro-F1, each class, confusion matrix.

        ``text`` and ``label`` are its fields; left out, they are guessed. With ``baselines`` beside what the commonest
        class and TF-IDF with logistic regression reach, if its run still has the examples that it learned from.

        >>> score = kotha.load("moods").evaluate_classes("moods.csv", baselines=False)
        >>> score.examples, score.labels
        (24, ('ভালো', 'মন্দ'))
        """
        from kotha.evaluation.classification import evaluate_classifier
        from kotha.finetune.classify import ClassifyTexts
        from kotha.text.corpus.labelled import read_labelled

        held_out = read_labelled(Path(table), text, label, errors=errors)
        learned = self._learned(ClassifyTexts()) if baselines else None
        return evaluate_classifier(self.bundle, held_out, learned, on_progress)

    @checked()
    def evaluate_images(
        self, images: Place, *, baselines: bool = True, on_progress: OnProgress | None = None
    ) -> "ClassificationScore":
        """Measure how well it tells images apart: those of a folder by class, or of an .npz archive (its test part).

        With ``baselines`` beside the commonest class and the nearest neighbour, if its run still has what it learned.

        >>> kotha.load("vit").evaluate_images("shapes.npz").examples
        12
        """
        from kotha.evaluation.classification import evaluate_images
        from kotha.finetune.images import ClassifyImages
        from kotha.generation.classes import vit_of
        from kotha.storage.images import read_labelled_images

        config = vit_of(self.bundle).config
        parts = read_labelled_images(Path(images), config.image_size, config.n_channels)
        learned = self._learned(ClassifyImages()) if baselines else None
        return evaluate_images(self.bundle, parts.get("test", parts["train"]), learned, on_progress)

    @checked()
    def evaluate_translations(
        self,
        table: Place,
        *,
        pair: tuple[str, str] | None = None,
        errors: Errors = "stop",
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

        self._as(Seq2Seq)  # refuses before anything is read
        fields = pair or fields_like(self.path, Path(table))
        pairs = read_text_pairs(Path(table), *fields, errors=errors)
        return evaluate_pairs(self.bundle, pairs, self._learned(TranslatePairs()), on_progress)
