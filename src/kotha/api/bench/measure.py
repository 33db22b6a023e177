"""One call for every measurement of this machine: training, writing and tokenizing beside transformers."""

from itertools import islice
from typing import Any, Literal

from kotha.api.bench import sides
from kotha.api.bench.turns import Turns
from kotha.api.model import load
from kotha.api.options import BenchOptions
from kotha.errors import UsageError
from kotha.i18n.message import Message, OnProgress, Option, Text
from kotha.model.gpt import GPT
from kotha.model.presets import preset as named
from kotha.text.corpus.documents import read_documents
from kotha.text.stories.corpus import stories
from kotha.text.tokenizer.importers import import_tokenizer
from kotha.text.tokenizer.trainers import train
from kotha.training.device import choose_arithmetic

_DOCUMENTS, _PIECES = 400, 2000
# What each work takes.
_FITTING = {
    "train": {"preset", "batch_size", "precision", "rounds"},
    "generate": {"source", "preset", "batch_size", "tokens", "weights", "rounds"},
    "tokenize": {"source", "tokenizer", "rounds"},
}


def bench(
    what: Literal["train", "generate", "tokenize"],
    source: str | None = None,
    work: BenchOptions = BenchOptions(),  # noqa: B008 - frozen
    on_progress: OnProgress = lambda *_: None,
) -> Turns:
    """Measure this machine: ours and transformers turn by turn on the same work.

    ``source`` is a run to generate with, or a text to tokenize.
    """
    options = {name: value for name, value in {"source": source, **vars(work)}.items() if value is not None}
    _check_fitting(what, options)
    rounds, batch_size = options.get("rounds", 5), options.get("batch_size", 8)
    if what == "tokenize":
        documents: Any = read_documents([source]) if source else stories()
        texts = [document.text for document in islice(documents, _DOCUMENTS)]
        made = import_tokenizer(options["tokenizer"]) if "tokenizer" in options else train(texts, vocab_size=_PIECES)
        return sides.bench_tokenizing(made, texts, rounds, on_progress)
    if source is not None and "preset" in options:
        raise UsageError("a run and {preset} are two models; give one of them", preset=Option("preset"))
    how = choose_arithmetic(options.get("precision", "auto"))
    if source is not None:
        model = load(source).gpt[0]
    else:
        config = sides.gpt_only(named(options.get("preset", "pocket")))
        if what == "train":
            return sides.bench_training(config, batch_size, how, rounds, on_progress)
        model = GPT(config).to(how.device)
    weights, tokens = options.get("weights", "float32"), options.get("tokens", 64)
    return sides.bench_writing(model, weights, batch_size, tokens, rounds, on_progress)


def _check_fitting(what: str, options: dict[str, Any]) -> None:
    """Refuse what belongs to another work."""
    for name in options.keys() - _FITTING[what]:
        called: Text | Option = Message("a run or a text") if name == "source" else Option(name)
        fitting = [work for work, names in _FITTING.items() if name in names]
        message = "{name} is for bench {fitting}, and this is bench {what}"
        raise UsageError(message, name=called, fitting=fitting, what=what)
