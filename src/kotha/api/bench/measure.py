"""One call for every measurement of this machine: training, writing and tokenizing beside transformers, and growth."""

from itertools import islice
from typing import Any, Literal

from kotha.api.bench import sides
from kotha.api.bench.growth import Growth as Growth
from kotha.api.bench.growth import measure_growth
from kotha.api.bench.turns import Turns
from kotha.api.model import load
from kotha.arguments import checked
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
    "growth": {"precision", "html"},
}


def check_fitting(what: str, given: dict[str, Any]) -> None:
    """Refuse what belongs to another work."""
    for name, value in given.items():
        if value is not None and name not in _FITTING[what]:
            called: Text | Option = Message("a run or a text") if name == "source" else Option(name)
            fitting = [work for work, names in _FITTING.items() if name in names]
            told = "{name} is for bench {fitting}, and this is bench {what}"
            raise UsageError(told, name=called, fitting=fitting, what=what)


@checked()
def bench(
    what: Literal["train", "generate", "tokenize", "growth"],
    source: str | None = None,
    *,
    on_progress: OnProgress = lambda *_: None,
    **given: Any,
) -> Turns | Growth:
    """Measure this machine: ours and transformers turn by turn on the same work, or how the cost of training grows.

    ``source`` is a run to generate with, or a text to tokenize. ``given`` are, of what the work takes, ``preset``,
    ``batch_size``, ``precision``, ``tokens``, ``weights``, ``tokenizer`` and ``rounds``.
    """
    check_fitting(what, {"source": source, **given})
    asked = {name: value for name, value in given.items() if value is not None}
    rounds, batch_size = asked.get("rounds", 5), asked.get("batch_size", 8)
    if what == "growth":
        return measure_growth(asked.get("precision", "auto"), on_progress)
    if what == "tokenize":
        documents: Any = read_documents([source]) if source else stories()
        texts = [document.text for document in islice(documents, _DOCUMENTS)]
        made = import_tokenizer(asked["tokenizer"]) if "tokenizer" in asked else train(texts, vocab_size=_PIECES)
        return sides.bench_tokenizing(made, texts, rounds, on_progress)
    if source is not None and "preset" in asked:
        raise UsageError("a run and {preset} are two models; give one of them", preset=Option("preset"))
    how = choose_arithmetic(asked.get("precision", "auto"))
    if source is not None:
        model = load(source).gpt[0]
    else:
        config = sides.gpt_only(named(asked.get("preset", "pocket")))
        if what == "train":
            return sides.bench_training(config, batch_size, how, rounds, on_progress)
        model = GPT(config).to(how.device)
    weights, tokens = asked.get("weights", "float32"), asked.get("tokens", 64)
    return sides.bench_writing(model, weights, batch_size, tokens, rounds, on_progress)
