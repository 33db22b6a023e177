"""A loaded model: generation, evaluation, inspection and export.

``LanguageModel`` delegates the work to other packages. For anything that its methods do not cover, use its ``model``,
``tokenizer`` and ``engine``. Evaluation is in ``evaluation.py``, and inspection in ``inside.py``.
"""

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import torch

from kotha.api import AnyPath
from kotha.api.evaluation import EvaluationMixin
from kotha.api.inside import InspectionMixin
from kotha.api.loaded_model import as_text
from kotha.api.progress import displayed
from kotha.arguments import checked
from kotha.artifacts import model_folder as folders
from kotha.errors import KothaError, UsageError
from kotha.generation.conversation import Conversation as Conversation
from kotha.generation.engine import Engine as Engine
from kotha.generation.request import Request as Request
from kotha.generation.request import Result as Result
from kotha.generation.settings import SamplingSettings as SamplingSettings
from kotha.generation.weights import Weights, stored_weights, worth_copying
from kotha.i18n.message import Message, OnProgress, Option
from kotha.model.bert import BERT
from kotha.model.gpt import GPT
from kotha.model.seq2seq import Seq2Seq
from kotha.model.vit import ViT
from kotha.storage import bundled
from kotha.storage.json_files import read_table
from kotha.storage.status import exists, is_file
from kotha.text.shards import DATASET_FILE

if TYPE_CHECKING:
    from kotha.export.parity import ParityReport
    from kotha.generation.classify import Classification as Classification
    from kotha.generation.fill_mask import Filled
    from kotha.retrieval.dense import Vectors
    from kotha.retrieval.embedding import Embedder

# Maximum number of texts generated in one batch; others wait for a free row.
_MOST_ROWS = 64


# A text or a list of texts; the result has the same form.
Texts = TypeVar("Texts", str, list[str])


@checked()
def load(path: AnyPath = bundled.NAME, device: str = "auto", adapter: AnyPath | None = None) -> "LanguageModel":
    """Load a model from a run folder (its best model), a model folder or a Hugging Face folder (default: box).

    ``box`` is the bundled model, which ``kotha card`` describes. ``device`` is cpu, cuda, or auto (a GPU if available).
    ``adapter`` is a LoRA adapter folder trained on this model, or the run that wrote it; the adapter is merged into the
    weights. Code in a folder is never executed.

    >>> kotha.load("run").config.family
    'gpt'
    >>> kotha.load("nowhere")
    Traceback (most recent call last):
    ...
    kotha.errors.KothaError: nowhere not found; give a run, model or Hugging Face folder, or box for the bundled model
    """
    folder = bundled.model_path(path)
    chosen = _device(device)
    if not exists(folder):
        raise KothaError(
            "{place} not found; give a run, model or Hugging Face folder, or box for the bundled model", place=folder
        )
    if is_file(folder):
        raise KothaError("{place} is a file; give a run, model or Hugging Face folder", place=folder)
    if is_file(folder / DATASET_FILE):
        template = "{place} is a data folder; train a model on it with `kotha train`, and specify the run folder"
        raise KothaError(template, place=folder)
    if _is_huggingface(folder):
        from kotha.export.huggingface.import_ import import_hf

        opened = import_hf(folder).bundle
        opened.model.to(chosen)
    else:
        opened = folders.load(folder, chosen)
    opened = opened.widened()
    if adapter is not None:
        from kotha.training.adapter import load_adapted

        opened = load_adapted(opened, Path(adapter), str(path))
        opened.model.to(chosen)
    return LanguageModel(opened, folder)


class LanguageModel(InspectionMixin, EvaluationMixin):
    """A model with its tokenizer.

    >>> lm = kotha.load("run")
    >>> lm
    LanguageModel('run': gpt, 242,528 parameters, 600 pieces, cpu)
    """

    def __repr__(self) -> str:
        count = sum(parameter.numel() for parameter in self.model.parameters())
        pieces = "no tokenizer" if self.tokenizer is None else f"{self.tokenizer.vocab_size:,} pieces"
        name = "" if self.path is None else f"{self._called!r}: "
        return f"LanguageModel({name}{self.config.family}, {count:,} parameters, {pieces}, {self.device})"

    # -- generation -------------------------------------------------------------------------------------------------

    @checked(SamplingSettings)
    def generate(
        self,
        prompt: Texts = "",  # type: ignore[assignment]
        *,
        tokens: int = 150,
        seed: int = 0,
        stop: Sequence[str] = (),
        **how: Any,
    ) -> Texts:
        """Continue a text, or each text in a list; return the prompt with its continuation.

        Generation ends after ``tokens`` tokens, before any of the ``stop`` texts, or when the model ends the document.
        The same seed gives the same text, whether a prompt is given alone or in a list. ``how`` may set temperature (0
        always takes the most likely token), top_k, top_p, min_p and repetition_penalty.

        >>> text = lm.generate("নদীর ধারে", tokens=5, seed=1)
        >>> text.startswith("নদীর ধারে")
        True
        >>> lm.generate(["নদীর ধারে", "মা"], tokens=5, seed=1)[0] == text
        True
        """
        prompts = [prompt] if isinstance(prompt, str) else list(prompt)
        requests = [self._request(each, tokens, seed, stop, how) for each in prompts]
        results = self._fast_engine(max(1, min(len(prompts), _MOST_ROWS))).generate(requests)
        texts = [each + result.text for each, result in zip(prompts, results, strict=True)]
        return texts[0] if isinstance(prompt, str) else texts

    @checked(SamplingSettings)
    def stream(
        self, prompt: str = "", *, tokens: int = 150, seed: int = 0, stop: Sequence[str] = (), **how: Any
    ) -> Iterator[str]:
        """Stream the continuation that ``generate`` would return, in complete grapheme clusters.

        >>> letters = lm.stream("নদীর ধারে", tokens=5, seed=1)
        >>> "নদীর ধারে" + "".join(letters) == lm.generate("নদীর ধারে", tokens=5, seed=1)
        True
        """
        request = self._request(prompt, tokens, seed, stop, how)
        return (event.text for event in self._fast_engine().stream(request) if event.text)

    @checked()
    def engine(
        self, max_batch: int = 1, weights: Weights | Literal["stored"] | None = None, *, kept_bytes: int = 0
    ) -> Engine:
        """Return an engine for custom requests: probabilities, many texts, narrower weights.

        By default it uses the model itself. ``stored`` keeps the weights' type, but copies them into a layout that is
        fast to read on a CPU, as ``generate`` does. ``kept_bytes`` limits
        the size of the prompt cache, which speeds up prompts with the same beginning.

        >>> from kotha.generation.request import Request
        >>> [result] = lm.engine().generate([Request(prompt="মা", tokens=3, alternatives=2)])
        >>> len(result.written[0].alternatives)
        2
        """
        if self.tokenizer is None:
            raise self._family_error("{called} is a {family} model without a tokenizer and cannot generate text")
        if not isinstance(self.model, GPT):
            raise self._family_error("{called} is a {family} model and does not generate text{instead}")
        stored = stored_weights(self.model) if weights == "stored" else weights
        settings: Any = {"max_batch": max_batch, "chat": self.bundle.chat, "kept_bytes": kept_bytes}
        return Engine(self.model, self.tokenizer, weights=stored, **settings)

    def _fast_engine(self, max_batch: int = 1) -> Engine:
        """Return an engine with its own copy of the weights if that is faster; the model may change between calls."""
        return self.engine(max_batch, "stored" if worth_copying(self.model) else None)

    @checked()
    def chat(self, *, plain: bool = False) -> Conversation:
        """Start a conversation, whose ``say`` method returns the answer to a turn.

        A model that was not trained for conversations continues the text instead, with a warning.

        >>> talk = lm.chat()
        >>> talk
        Conversation(0 turns; this model was not trained for conversation, so it continues your text)
        >>> isinstance(talk.say("নদীর ধারে", tokens=5), str)
        True
        """
        talk = Conversation(self._fast_engine(), plain)
        if talk.remark is not None:
            warnings.warn(str(talk.remark), stacklevel=3)  # the caller, outside the wrapper of @checked
        return talk

    @staticmethod
    def _request(prompt: str, tokens: int, seed: int, stop: Sequence[str], how: dict[str, Any]) -> Request:
        return Request(prompt=prompt, tokens=tokens, stop=tuple(stop), settings=SamplingSettings(seed=seed, **how))

    # -- filling gaps -----------------------------------------------------------------------------------------------

    @checked()
    def fill(self, text: str, *, words: int = 5) -> "Filled":
        """Return the most likely words for each ``[MASK]`` in a text (BERT only).

        >>> filled = kotha.load("bert").fill("নদীর ধারে [MASK] থাকে।", words=3)
        >>> len(filled.words), len(filled.words[0])
        (1, 3)
        """
        from kotha.generation.fill_mask import fill

        return fill(*self._as(BERT), as_text(text), words)

    @checked()
    def follows(self, first: str, second: str) -> float:
        """Return the probability that one sentence follows another (BERT only).

        >>> 0 < kotha.load("bert").follows("মা বাজারে গেল।", "সে মাছ কিনল।") < 1
        True
        """
        from kotha.generation.fill_mask import follows

        return follows(*self._as(BERT), as_text(first), as_text(second))

    # -- comparing texts --------------------------------------------------------------------------------------------

    @displayed
    @checked()
    def embed(self, texts: str | Sequence[str], *, layer: int = 0, on_progress: OnProgress | None = None) -> "Vectors":
        """Embed one text or several as unit vectors: a NumPy array of shape (d_model,) or (texts, d_model).

        A vector is the mean of a text's token vectors after a ``layer``, where 0 is the embedding table. The dot
        product of two vectors is the similarity of their texts.

        >>> vectors = lm.embed(["নদীর ধারে", "নদীর ধারে", "মা"])
        >>> vectors.shape, bool(vectors[0] @ vectors[1] > vectors[0] @ vectors[2])
        ((3, 96), True)
        """
        if isinstance(texts, str):
            one: Vectors = self.embedder(layer)([as_text(texts)], on_progress)[0]
            return one
        return self.embedder(layer)(texts, on_progress)

    @checked()
    def embedder(self, layer: int = 0) -> "Embedder":
        """Return the embedder that ``embed`` uses, for a custom index.

        >>> lm.embedder().note.width
        96
        """
        from kotha.retrieval.embedding import Embedder

        return Embedder(self.model, self.tokenizer, self._called, layer)

    # -- other families, other programs ----------------------------------------------------------------------------

    @displayed
    @checked()
    def translate(self, text: Texts, *, beams: int = 4, on_progress: OnProgress | None = None) -> Texts:
        """Translate a text, or each text in a list, by beam search (Seq2Seq only).

        >>> isinstance(kotha.load("seq2seq").translate("নদীর ধারে"), str)
        True
        """
        from kotha.generation.beam import translate

        texts = [as_text(text)] if isinstance(text, str) else list(text)
        found = translate(*self._as(Seq2Seq), texts, beams, on_progress)
        return found[0] if isinstance(text, str) else found

    @overload
    def classify(self, text: AnyPath, *, why: bool = False) -> "Classification": ...

    @overload
    def classify(self, text: list[str] | list[Path], *, why: bool = False) -> "list[Classification]": ...

    @checked()
    def classify(
        self, text: AnyPath | Sequence[AnyPath], *, why: bool = False
    ) -> "Classification | list[Classification]":
        """Classify a text, or each text in a list, with probabilities; ``why`` adds the contribution of each token.

        For a ViT, pass paths of images; ``attention(image=…)`` shows its attention.

        >>> answer = kotha.load("moods").classify("বাহ, কী চমৎকার")
        >>> answer.label in answer.probabilities
        True
        >>> lm.classify("বাহ")
        Traceback (most recent call last):
        ...
        kotha.errors.UsageError: this is a gpt model, not a classifier; fine-tune it with `kotha finetune classify`
        """
        from kotha.generation.classify import Classifier, classify_images

        is_single = isinstance(text, str | os.PathLike)
        inputs: list[AnyPath] = [text] if isinstance(text, str | os.PathLike) else list(text)
        if isinstance(self.model, ViT):
            if why:
                raise UsageError("{why} applies only to texts; for a ViT use attention", why=Option("why"))
            answers = classify_images(self.bundle, [Path(each) for each in inputs])
        else:
            if isinstance(text, str):
                as_text(text)
            if not all(isinstance(each, str) for each in inputs):
                raise UsageError("{called} takes texts, not paths; pass the contents of the file", called=self._called)
            answers = Classifier(self.bundle).classify([str(each) for each in inputs], why)
        return answers[0] if is_single else answers

    @displayed
    @checked()
    def export(
        self,
        to: Literal["hf", "gguf", "onnx", "web"],
        out: AnyPath,
        *,
        weights: str | None = None,
        license: str | None = None,
        lines: Sequence[str] | None = None,
        overwrite: bool = False,
        on_progress: OnProgress | None = None,
    ) -> "ParityReport":
        """Export the model for other tools, and verify that the outputs match (``passed`` in the report).

        ``hf`` writes a Hugging Face folder, ``gguf`` a file for llama.cpp, ``onnx`` graphs for onnxruntime, and ``web``
        a single page for any browser. ``weights`` is the exported weight type, such as ``q8_0``; ``license`` is written
        to the model card; ``lines`` are the texts on which both models are compared.

        >>> lm.export("gguf", "elsewhere").passed
        True
        """
        from kotha.export.targets import export

        if on_progress is not None:
            on_progress(Message("writing and comparing"), 0, 0)
        options: Any = {"weights": weights, "license": license, "lines": lines, "overwrite": overwrite}
        return export(self.bundle, to, Path(out), run=self.path, **options)


def _device(name: str) -> str:
    """Return the device with this name; raise ``UsageError`` if it is not available."""
    n_gpus = torch.cuda.device_count()
    if name == "auto":
        return "cuda" if n_gpus else "cpu"
    known = ["cpu", "cuda", *(f"cuda:{index}" for index in range(n_gpus))][: None if n_gpus else 1]
    if name not in known:
        raise UsageError(
            "{device} is not available; use auto, or {known}", device=Option("device", str(name)), known=known
        )
    return name


def _is_huggingface(path: Path) -> bool:
    """Return whether a folder has a Hugging Face config; errors in the config are reported when it is loaded."""
    file = path / folders.CONFIG_FILE
    with suppress(KothaError):
        return "model_type" in read_table(file)
    return False
