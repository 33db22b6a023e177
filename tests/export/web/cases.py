"""Shared cases for the Python and TypeScript tests: models with logits, tokenizers with ids, streams, sampled tokens.

``python -m tests.export.web.cases`` writes them for the page's tests (``web/tests/cases/model.json``).
"""

import json
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from tests.export.models import TEXT, shaken

from kotha.export.parity import AWKWARD_LINES, built_in_lines
from kotha.export.web.export import pack, rounded, squeezed
from kotha.export.web.vocabulary import describe_vocabulary
from kotha.generation.settings import uniforms
from kotha.model.config import GPTConfig
from kotha.model.gpt import GPT
from kotha.model.presets import MODERN
from kotha.model.pruning import remove_heads
from kotha.text.akshara import units
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.trainers import train

FILE = Path(__file__).parents[3] / "web/tests/cases/model.json"
_SMALL: dict[str, Any] = {**TEXT, "vocab_size": 40, "context_length": 24}
_OLD: dict[str, Any] = {"norm_order": "post", "activation": "relu"}
CONFIGS: dict[str, GPTConfig] = {
    "gpt2": GPTConfig(**_SMALL, activation="gelu-tanh"),
    "course": GPTConfig(**_SMALL, attention_bias=False, tied_head=False),
    "qwen3": GPTConfig(**_SMALL, **MODERN, n_kv_heads=1, d_head=12, rotary_base=5000.0),
    "llama": GPTConfig(**_SMALL, **{**MODERN, "qk_norm": False, "feedforward_bias": True}, d_ff=20, head_bias=True),
    "2017": GPTConfig(**_SMALL, **_OLD, positions="sinusoidal"),
    "marian": GPTConfig(**_SMALL, **_OLD, positions="sinusoidal-halves", final_norm=True),
    "orderless": GPTConfig(**_SMALL, positions="none"),
}
_REMOVED = ["blocks.0.attention.1", "blocks.1.attention.2", "blocks.1.attention.3"]
PRUNED = GPTConfig(**{**_SMALL, "n_heads": 4}, **{**MODERN, "n_kv_heads": 2})
LINES = [
    *AWKWARD_LINES,
    *(line[:160] for line in islice(built_in_lines(48), len(AWKWARD_LINES), None)),
    "I'LL say it's don't",
    "a  b\n\n c\t",
]
WORDS = ["ক্ষমা", "অ্যাপ", "এ্যাব", "স্ত্রী", "র\u200d্যাব", "উদ্\u200cযাপন", "তাঁর", "👨\u200d👩\u200d👧", "a\u0301b", "হিন্দी"]


@cache
def tokenizers() -> dict[str, Tokenizer]:
    lines = built_in_lines()
    return {
        "unigram": train(lines, "unigram", 420),
        "bpe": train(lines, "bpe", 480, split="words"),
        "bpe-qwen35": train([*lines, "র\u200d্যাব"] * 3, "bpe", 480, split="qwen35"),
        "points": train(lines, "char", 300, level="codepoint"),
        "letters": train(lines, "char", 400, level="akshara"),
    }


def models() -> dict[str, GPT]:
    found: dict[str, Any] = {name: shaken(config).model for name, config in CONFIGS.items()}
    return {**found, "pruned": remove_heads(shaken(PRUNED).model, _REMOVED)}


def made() -> dict[str, Any]:
    """All cases, JSON-serializable."""
    return {
        "models": {name: _model_case(model) for name, model in models().items()},
        "tokenizers": {name: _tokenizer_case(tokenizer) for name, tokenizer in tokenizers().items()},
        "letters": [[word, units(word)] for word in WORDS],
        "uniforms": {str(seed): list(islice(uniforms(seed), 0, 700, 69)) for seed in (0, 7, 2**31 - 1)},
    }


def _model_case(model: GPT) -> dict[str, Any]:
    arrays, content = pack(model)
    ids = torch.randint(model.config.vocab_size, (1, 20), generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        logits = rounded(model)(ids)[0]  # (T, V)
    return {
        "description": {
            "name": "",
            "model": model.config.to_dict(),
            "arrays": arrays,
            "bytes": len(content),
        },
        "weights": squeezed(content),
        "ids": ids[0].tolist(),
        "logits": {str(place): [round(value, 6) for value in logits[place].tolist()] for place in (0, 7, 19)},
    }


def _tokenizer_case(tokenizer: Tokenizer) -> dict[str, Any]:
    texts = [[line, tokenizer.normalize(line), tokenizer.encode(line)] for line in LINES]
    decoded = [[ids, tokenizer.decode(ids)] for _, _, ids in texts[:24]]
    streams = []
    for _, _, ids in texts[:24]:
        stream = tokenizer.stream()
        streams.append([*(stream.push(token) for token in ids), stream.finish()])
    return {
        "vocabulary": describe_vocabulary(tokenizer),
        "texts": texts,
        "decoded": decoded,
        "streams": streams,
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(made(), ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
