"""Kotha (কথা): train small language models from raw text, and inspect what happens inside them.

    tokenizer = kotha.train_tokenizer(["news.jsonl"], kind="unigram", vocab_size=8192)
    data = kotha.prepare(["news.jsonl"], tokenizer, "data")
    run = kotha.train(data, minutes=10, out="run")
    run.model.generate("নদীর ধারে", tokens=40)

These names are the public API; their modules are imported on first use. Long calls show their progress on a terminal
and in a notebook, but not in a file or a pipe; ``kotha.quiet()`` turns this off.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kotha.api.compare import compare as compare
    from kotha.api.data import prepare as prepare
    from kotha.api.data import train_tokenizer as train_tokenizer
    from kotha.api.data import write_questions as write_questions
    from kotha.api.data import write_stories as write_stories
    from kotha.api.finetune import finetune_classify as finetune_classify
    from kotha.api.finetune import finetune_instruct as finetune_instruct
    from kotha.api.index import Index as Index
    from kotha.api.judge import judge as judge
    from kotha.api.model import LanguageModel as LanguageModel
    from kotha.api.model import load as load
    from kotha.api.progress import quiet as quiet
    from kotha.api.run import Run as Run
    from kotha.api.run import train as train
    from kotha.errors import KothaError as KothaError
    from kotha.model.presets import presets as presets
    from kotha.text.tokenizer.tokenizer import Tokenizer as Tokenizer

__version__ = "0.1.0"

# A thread that waits for another spins for a while. If a core is busy with another process, the usual while makes a
# training step on two cores up to ten times as slow. The library reads this variable when torch is imported.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

_NAMES = {
    "kotha.api.compare": ["compare"],
    "kotha.api.data": ["prepare", "train_tokenizer", "write_questions", "write_stories"],
    "kotha.api.finetune": ["finetune_classify", "finetune_instruct"],
    "kotha.api.index": ["Index"],
    "kotha.api.judge": ["judge"],
    "kotha.api.model": ["LanguageModel", "load"],
    "kotha.api.progress": ["quiet"],
    "kotha.api.run": ["Run", "train"],
    "kotha.errors": ["KothaError"],
    "kotha.model.presets": ["presets"],
    "kotha.text.tokenizer.tokenizer": ["Tokenizer"],
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"kotha has no {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
