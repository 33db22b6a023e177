"""Evaluate a model on text, perturbed text, questions, labelled examples or pairs."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kotha.api import AnyPath
from kotha.api.loaded_model import OpenedModel
from kotha.api.options import EvaluateOptions
from kotha.api.progress import displayed
from kotha.arguments import checked
from kotha.errors import NotFiniteError, UsageError
from kotha.i18n.message import Message, OnProgress
from kotha.model.bert import BERT
from kotha.model.gpt import GPT
from kotha.model.seq2seq import Seq2Seq
from kotha.model.vit import ViT
from kotha.text.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from kotha.text.corpus.documents import OnProblem

# Inputs that must be files, by the suffix of the family's name.
_FILES = {
    "classifier": Message("labelled texts"),
    "seq2seq": Message("pairs of texts"),
    "vit": Message("images, in one folder per class"),
}


class EvaluationMixin(OpenedModel):
    """Evaluation methods for ``LanguageModel``."""

    @displayed
    @checked(EvaluateOptions)
    def evaluate(
        self,
        text: AnyPath | Sequence[str],
        *,
        on_progress: OnProgress | None = None,
        on_problem: "OnProblem | None" = None,
        **options: Any,
    ) -> Any:
        """Evaluate the model; the score also says whether the model was trained on the text.

        A GPT model is evaluated on text (a file, a folder, a data folder, or a list of documents) by loss, perplexity
        and bits per byte, on a file of questions, or on an lm-evaluation-harness task (.yaml). A BERT model predicts
        masked words, a Seq2Seq model translates a table of pairs, and a classifier classifies labelled texts or images.
        ``options`` are the fields of ``EvaluateOptions``: ``context``, ``stride``, ``baselines`` (none, or auto) and
        others.

        >>> score = lm.evaluate("stories.jsonl", context=32)
        >>> score.bits_per_byte < 8, str(score.seen.verdict)
        (True, '95% seen in training')
        >>> str(lm.evaluate(["নদীর ধারে একটি গ্রাম।"]).seen.verdict)
        'new'
        >>> lm.evaluate("pairs.jsonl").examples
        12
        >>> kotha.load("seq2seq").evaluate("pairs.tsv", pair=("bn", "en")).sentences
        12
        >>> kotha.load("moods").evaluate("moods.csv").labels
        ('ভালো', 'মন্দ')

        ``perturb`` measures how much worse the score becomes when the text is perturbed.

        >>> lm.evaluate("stories.jsonl", perturb=["latin"]).falls[0].after > 0
        True
        """
        how = EvaluateOptions(**{"baselines": "none", **options})
        try:
            return self._evaluate(text, how, on_progress, on_problem)
        except NotFiniteError as error:
            raise NotFiniteError(None if self.path is None else self._called) from error

    def _evaluate(
        self,
        text: AnyPath | Sequence[str],
        how: EvaluateOptions,
        on_progress: OnProgress | None,
        on_problem: "OnProblem | None",
    ) -> Any:
        """Evaluate as the family of the model and the kind of file require."""
        path = Path(text) if isinstance(text, str | os.PathLike) else None
        family = self.config.family.rpartition("-")[2]
        if path is None and (how.perturb or family in _FILES):
            name, what = self._called, _FILES.get(family, Message("texts"))
            raise UsageError("{path} is evaluated on {what}; give a file that contains them", path=name, what=what)
        if path is not None and how.perturb:
            from kotha.evaluation.robustness import evaluate_perturbed

            given: Any = {"share": how.share, "pair": how.pair or (None, None), "errors": how.errors}
            return evaluate_perturbed(self.bundle, path, how.perturb, **given, on_progress=on_progress)
        if path is not None and family in _FILES:
            return self._on_examples(path, how, on_progress)
        if path is not None and family == "gpt":
            from kotha.text.corpus.dialogues import holds_dialogues, read_dialogues

            if path.suffix in (".yaml", ".yml"):
                from kotha.evaluation.harness import run_task

                return run_task(*self.gpt, path)
            if how.pair or (how.field == "text" and holds_dialogues(path)):
                from kotha.evaluation.instructions import evaluate_instructions
                from kotha.finetune.instruct import learned_from

                questions = read_dialogues(path, *(how.pair or ()), errors=how.errors)
                return evaluate_instructions(self.bundle, questions, learned_from(self.path), on_progress)
        return self._on_text(text, how, on_progress, on_problem)

    def _on_text(
        self,
        text: AnyPath | Sequence[str],
        how: EvaluateOptions,
        on_progress: OnProgress | None,
        on_problem: "OnProblem | None",
    ) -> Any:
        """Evaluate on text, and compare the score with n-gram baselines."""
        from kotha.evaluation.contamination import look_up
        from kotha.evaluation.masked_words import evaluate_masked
        from kotha.evaluation.perplexity import MAX_TOKENS, count_baselines, evaluate_text
        from kotha.text.held_out import tokens_of

        reading: Any = {"split": how.split, "field": how.field, "errors": how.errors, "on_problem": on_problem}
        if isinstance(self.model, BERT):
            model, tokenizer = self._as(BERT)
            held_out, data = self._held_out(tokenizer, text, **reading), self._data(how.baselines)
            training_tokens = None if data is None else tokens_of(data["train"], MAX_TOKENS)
            return evaluate_masked(model, tokenizer, held_out, training_tokens, on_progress)
        gpt, tokenizer = self.gpt
        held_out, data = self._held_out(tokenizer, text, **reading), self._data(how.baselines)
        score = evaluate_text(gpt, held_out, context_length=how.context, stride=how.stride, on_progress=on_progress)
        size = gpt.config.vocab_size
        baselines = {} if data is None else count_baselines(data, held_out, size, on_progress=on_progress)
        return replace(score, seen=look_up(held_out, self.path), baselines=baselines)

    def _on_examples(self, path: Path, how: EvaluateOptions, on_progress: OnProgress | None) -> Any:
        """Evaluate on pairs, labelled texts or images, and compare with baselines from the run's training examples."""
        from kotha.evaluation.classification import evaluate_classifier, evaluate_images
        from kotha.evaluation.translation import evaluate_pairs
        from kotha.finetune.classify import ClassifyTexts
        from kotha.finetune.images import ClassifyImages
        from kotha.finetune.pairs import TranslatePairs, fields_like
        from kotha.storage.images import read_labelled_images
        from kotha.text.corpus.labelled import read_labelled
        from kotha.text.corpus.pairs import read_text_pairs

        if isinstance(self.model, Seq2Seq):
            pairs = read_text_pairs(path, *(how.pair or fields_like(self.path, path)), errors=how.errors)
            return evaluate_pairs(self.bundle, pairs, self._training_examples(TranslatePairs()), on_progress)
        if isinstance(self.model, ViT):
            parts = read_labelled_images(path, self.model.config.image_size, self.model.config.n_channels)
            held_out = parts.get("test", parts["train"])
            return evaluate_images(self.bundle, held_out, self._training_examples(ClassifyImages()), on_progress)
        texts = read_labelled(path, *(how.pair or ()), errors=how.errors)
        return evaluate_classifier(self.bundle, texts, self._training_examples(ClassifyTexts()), on_progress)

    @property
    def gpt(self) -> tuple[GPT, Tokenizer]:
        """The model and tokenizer, if the model is a GPT; other families raise ``UsageError``.

        >>> model, tokenizer = lm.gpt
        """
        return self._as(GPT)
