"""A model to work with: let it write, measure it, look inside, take it away.

``LanguageModel`` adds no behaviour of its own. Each method calls the room that does the work, with the model, its
tokenizer and its device at hand; whoever needs more than a method offers finds ``model``, ``tokenizer`` and ``engine``.
How it is measured stands in ``evaluating.py``, how it is looked into in ``inside.py``.
"""

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import torch

from kotha.api import Place
from kotha.api.evaluation import EvaluationMixin
from kotha.api.inside import InspectionMixin
from kotha.arguments import checked
from kotha.artifacts import model_folder as folders
from kotha.errors import KothaError, UsageError
from kotha.generation.conversation import Conversation as Conversation
from kotha.generation.engine import Engine as Engine
from kotha.generation.request import Request as Request
from kotha.generation.request import Result as Result
from kotha.generation.settings import SamplingSettings as SamplingSettings
from kotha.generation.weights import Weights, as_they_are
from kotha.i18n.message import OnProgress, Option
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
    from kotha.generation.classify import Classified as Classified
    from kotha.generation.fill_mask import Filled
    from kotha.retrieval.dense import Vectors
    from kotha.retrieval.embedding import Embedder

# Texts that are written side by side; more wait for a free row.
_MOST_ROWS = 64


# A text, or a list of them: as many come back.
Texts = TypeVar("Texts", str, list[str])


@checked()
def load(path: Place = bundled.NAME, device: str = "auto", adapter: Place | None = None) -> "LanguageModel":
    """Open a model: a run folder (its best model), a model folder, or a Hugging Face folder; box, or nothing: ours.

    The model in the box comes with the package; ``kotha card`` tells of it. ``device`` is cpu, cuda, or auto: a GPU
    where there is one. ``adapter`` is a small folder that was learned on this model (LoRA), or the run that wrote it:
    it is put on and merged. Nothing in a folder is ever executed.

    >>> kotha.load("run").config.family
    'gpt'
    >>> kotha.load("nowhere")
    Traceback (most recent call last):
    ...
    kotha.errors.KothaError: there is no nowhere; name a run, a model or a Hugging Face folder, or box for the one here
    """
    place = bundled.place(path)
    chosen = _device(device)
    if not exists(place):
        raise KothaError(
            "there is no {place}; name a run, a model or a Hugging Face folder, or box for the one here", place=place
        )
    if is_file(place):
        raise KothaError("{place} is a file; name the folder of a model", place=place)
    if is_file(place / DATASET_FILE):
        raise KothaError("{place} is a data folder; train a model on it, and load that", place=place)
    if _is_foreign(place):
        from kotha.export.huggingface.import_ import import_hf

        opened = import_hf(place).bundle
        opened.model.to(chosen)
    else:
        opened = folders.load(place, chosen)
    opened = opened.widened()
    if adapter is not None:
        from kotha.training.adapter import load_adapted

        opened = load_adapted(opened, Path(adapter), str(path))
        opened.model.to(chosen)
    return LanguageModel(opened, place)


class LanguageModel(InspectionMixin, EvaluationMixin):
    """A model with the tokenizer that it reads with.

    >>> lm = kotha.load("run")
    >>> lm
    LanguageModel('run': gpt, 242,528 parameters, 600 pieces, cpu)
    """

    def __repr__(self) -> str:
        count = sum(parameter.numel() for parameter in self.model.parameters())
        pieces = "no tokenizer" if self.tokenizer is None else f"{self.tokenizer.vocab_size:,} pieces"
        name = "" if self.path is None else f"{self._called!r}: "
        return f"LanguageModel({name}{self.config.family}, {count:,} parameters, {pieces}, {self.device})"

    # -- writing ----------------------------------------------------------------------------------------------------

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
        """Go on with a text, or with each of a list: the prompt and what the model writes after it.

        It ends after ``tokens`` tokens, before a text of ``stop``, or where the model ends the document. The same seed
        gives the same text, alone or in a list. ``how`` is temperature (0 always takes the best token), top_k, top_p,
        min_p and repetition_penalty.

        >>> text = lm.generate("নদীর ধারে", tokens=5, seed=1)
        >>> text.startswith("নদীর ধারে")
        True
        >>> lm.generate(["নদীর ধারে", "মা"], tokens=5, seed=1)[0] == text
        True
        """
        several = [prompt] if isinstance(prompt, str) else list(prompt)
        requests = [self._request(each, tokens, seed, stop, how) for each in several]
        results = self.engine(max(1, min(len(several), _MOST_ROWS))).generate(requests)
        texts = [each + result.text for each, result in zip(several, results, strict=True)]
        return texts[0] if isinstance(prompt, str) else texts

    @checked(SamplingSettings)
    def stream(
        self, prompt: str = "", *, tokens: int = 150, seed: int = 0, stop: Sequence[str] = (), **how: Any
    ) -> Iterator[str]:
        """What ``generate`` writes after a prompt, as it is written: whole letters, one or more at a time.

        >>> letters = lm.stream("নদীর ধারে", tokens=5, seed=1)
        >>> "নদীর ধারে" + "".join(letters) == lm.generate("নদীর ধারে", tokens=5, seed=1)
        True
        """
        request = self._request(prompt, tokens, seed, stop, how)
        return (event.text for event in self.engine().stream(request) if event.text)

    @checked()
    def engine(
        self, max_batch: int = 1, weights: Weights | Literal["as-they-are"] | None = None, *, kept_bytes: int = 0
    ) -> Engine:
        """The engine behind ``generate``, for requests of one's own: probabilities, many texts, narrower weights.

        ``as-they-are`` is a copy of the same weights, the fastest way to read them. ``kept_bytes`` may be used to
        remember prompts, for others that begin alike.

        >>> from kotha.generation.request import Request
        >>> [result] = lm.engine().generate([Request(prompt="মা", tokens=3, alternatives=2)])
        >>> len(result.written[0].alternatives)
        2
        """
        if self.tokenizer is None:
            raise self._refusal("{called} is a {family} without a tokenizer; it writes no text")
        if not isinstance(self.model, GPT):
            raise self._refusal("{called} is a {family} and writes no text{instead}")
        stored = as_they_are(self.model) if weights == "as-they-are" else weights
        wishes: Any = {"max_batch": max_batch, "chat": self.bundle.chat, "kept_bytes": kept_bytes}
        return Engine(self.model, self.tokenizer, weights=stored, **wishes)

    @checked()
    def chat(self, *, plain: bool = False) -> Conversation:
        """A talk with the model, turn by turn: ``say`` answers.

        A model that was never taught to take turns goes on with what is said instead, and the talk says so.

        >>> talk = lm.chat()
        >>> talk
        Conversation(0 turns; this model was not trained for conversation: it continues the text you write)
        >>> isinstance(talk.say("নদীর ধারে", tokens=5), str)
        True
        """
        talk = Conversation(self.engine(), plain)
        if talk.remark is not None:
            warnings.warn(str(talk.remark), stacklevel=3)  # past the check of its arguments
        return talk

    @staticmethod
    def _request(prompt: str, tokens: int, seed: int, stop: Sequence[str], how: dict[str, Any]) -> Request:
        return Request(prompt=prompt, tokens=tokens, stop=tuple(stop), settings=SamplingSettings(seed=seed, **how))

    # -- filling gaps -----------------------------------------------------------------------------------------------

    @checked()
    def fill(self, text: str, *, words: int = 5) -> "Filled":
        """The likeliest words for each ``[MASK]`` of a text; a BERT does this.

        >>> filled = kotha.load("bert").fill("নদীর ধারে [MASK] থাকে।", words=3)
        >>> len(filled.words), len(filled.words[0])
        (1, 3)
        """
        from kotha.generation.fill_mask import fill

        return fill(*self._as(BERT), text, words)

    @checked()
    def follows(self, first: str, second: str) -> float:
        """How likely one sentence comes after another, as a BERT judges.

        >>> 0 < kotha.load("bert").follows("মা বাজারে গেল।", "সে মাছ কিনল।") < 1
        True
        """
        from kotha.generation.fill_mask import follows

        return follows(*self._as(BERT), first, second)

    # -- comparing texts --------------------------------------------------------------------------------------------

    @checked()
    def embed(self, texts: str | Sequence[str], *, layer: int = 0, on_progress: OnProgress | None = None) -> "Vectors":
        """Texts as vectors of length 1, whose product is how alike they are: (texts, d_model) by numpy, or (d_model,).

        A vector is the mean over a text's tokens of what a ``layer`` makes of them; 0 is the table of tokens itself.

        >>> vectors = lm.embed(["নদীর ধারে", "নদীর ধারে", "মা"])
        >>> vectors.shape, bool(vectors[0] @ vectors[1] > vectors[0] @ vectors[2])
        ((3, 96), True)
        """
        if isinstance(texts, str):
            one: Vectors = self.embedder(layer)([texts], on_progress)[0]
            return one
        return self.embedder(layer)(texts, on_progress)

    @checked()
    def embedder(self, layer: int = 0) -> "Embedder":
        """What ``embed`` makes vectors with, for an index of one's own.

        >>> lm.embedder().note.width
        96
        """
        from kotha.retrieval.embedding import Embedder

        return Embedder(self.model, self.tokenizer, self._called, layer)

    # -- other families, other programs ----------------------------------------------------------------------------

    @checked()
    def translate(self, text: Texts, *, beams: int = 4, on_progress: OnProgress | None = None) -> Texts:
        """A text, or each of a list, in the other language, by beam search; a Seq2Seq does this.

        >>> isinstance(kotha.load("seq2seq").translate("নদীর ধারে"), str)
        True
        """
        from kotha.generation.beam import translate

        several = [text] if isinstance(text, str) else list(text)
        found = translate(*self._as(Seq2Seq), several, beams, on_progress)
        return found[0] if isinstance(text, str) else found

    @overload
    def classify(self, text: Place, *, why: bool = False) -> "Classified": ...

    @overload
    def classify(self, text: list[str] | list[Path], *, why: bool = False) -> "list[Classified]": ...

    @checked()
    def classify(self, text: Place | Sequence[Place], *, why: bool = False) -> "Classified | list[Classified]":
        """Of which class a text is, or each of a list, with probabilities; ``why`` tells what each token was worth.

        A ViT reads the files of that name, images; where it looks is shown by ``attention(image=…)``.

        >>> answer = kotha.load("moods").classify("বাহ, কী চমৎকার")
        >>> answer.label in answer.probabilities
        True
        >>> lm.classify("বাহ")
        Traceback (most recent call last):
        ...
        kotha.errors.UsageError: this is a gpt model, and no classifier; make one of it with adapt classify
        """
        from kotha.generation.classify import Classifier, classify_images

        alone = isinstance(text, str | os.PathLike)
        several: list[Place] = [text] if isinstance(text, str | os.PathLike) else list(text)
        if isinstance(self.model, ViT):
            if why:
                raise UsageError("{why} is for texts; where a ViT looks is shown by its attention", why=Option("why"))
            answers = classify_images(self.bundle, [Path(each) for each in several])
        else:
            if not all(isinstance(each, str) for each in several):
                raise UsageError(
                    "{called} reads texts, and a path names a file; give what the file says", called=self._called
                )
            answers = Classifier(self.bundle).classify([str(each) for each in several], why)
        return answers[0] if alone else answers

    @checked()
    def export(
        self,
        to: Literal["hf", "gguf", "onnx", "web"],
        out: Place,
        *,
        weights: str | None = None,
        license: str | None = None,
        lines: Sequence[str] | None = None,
        overwrite: bool = False,
    ) -> "ParityReport":
        """Write the model for other tools, and prove there that it is the same: ``passed`` says whether.

        ``hf`` is a Hugging Face folder, ``gguf`` a file for llama.cpp, ``onnx`` graphs for onnxruntime, ``web`` one
        page for any browser. ``weights`` is their type there, such as ``q8_0``; ``license`` goes into the model card;
        both sides are compared on ``lines``.

        >>> lm.export("gguf", "elsewhere").passed
        True
        """
        from kotha.export.targets import export

        how: Any = {"weights": weights, "license": license, "lines": lines, "overwrite": overwrite}
        return export(self.bundle, to, Path(out), run=self.path, **how)


def _device(name: str) -> str:
    """The device that a name means, once it is here."""
    n_gpus = torch.cuda.device_count()
    if name == "auto":
        return "cuda" if n_gpus else "cpu"
    known = ["cpu", "cuda", *(f"cuda:{place}" for place in range(n_gpus))][: None if n_gpus else 1]
    if name not in known:
        raise UsageError("{device} is not here; use auto, or {known}", device=Option("device", str(name)), known=known)
    return name


def _is_foreign(place: Path) -> bool:
    """Whether a folder is Hugging Face's, by its config; what is broken or missing is said where it is read."""
    file = place / folders.CONFIG_FILE
    with suppress(KothaError):
        return "model_type" in read_table(file)
    return False
