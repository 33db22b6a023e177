"""Which doors a config can pass, said before it is trained.

A model that took days to train must not find its door closed by a setting that nobody needed. Each door answers for a
config alone: open, or closed by these settings.
"""

from dataclasses import dataclass

from kotha.errors import ConfigError
from kotha.export.huggingface.layout import Layout
from kotha.export.huggingface.layouts import LAYOUTS
from kotha.model.config import GPTConfig, ModelConfig

# llama.cpp knows BPE by its pre-tokenizer's name, and SentencePiece's kind of unigram; other kinds it cannot repeat.
GGUF_TOKENIZERS = ("bpe", "unigram")


@dataclass(frozen=True)
class Door:
    """A way out, and whether a config passes it."""

    name: str
    open: bool
    because: str
    """As what it opens there, or which settings close it."""


def doors(config: ModelConfig, tokenizer_kind: str | None = None) -> list[Door]:
    """The doors hf, gguf and onnx, for a config and (where it is known) a kind of tokenizer."""
    return [_hf(config), _gguf(config, tokenizer_kind), _onnx(config)]


def choose_layout(config: ModelConfig) -> Layout:
    """The layout of Hugging Face that a config fits; refused with the settings in the way."""
    fitting = next((layout for layout in _of_family(config) if not layout.obstacles(config)), None)
    if fitting is None:
        raise ConfigError(f"no Hugging Face layout fits this model: {_obstacles(config)}")
    return fitting


def _of_family(config: ModelConfig) -> list[Layout]:
    return [layout for layout in LAYOUTS if type(config) is layout.family]


def _obstacles(config: ModelConfig) -> str:
    """What is in the way of the layout that is nearest."""
    nearest = min((layout.obstacles(config) for layout in _of_family(config)), key=len, default=["its family"])
    return "; ".join(nearest)


def _hf(config: ModelConfig) -> Door:
    try:
        return Door("hf", True, f"opens as {choose_layout(config).architecture}")
    except ConfigError:
        return Door("hf", False, _obstacles(config))


def _gguf(config: ModelConfig, tokenizer_kind: str | None) -> Door:
    from kotha.export.gguf.architecture import architecture_of, obstacles

    closed = obstacles(config)
    if closed:
        return Door("gguf", False, "; ".join(closed))
    if tokenizer_kind is not None and tokenizer_kind not in GGUF_TOKENIZERS:
        return Door("gguf", False, f"a {tokenizer_kind} tokenizer: llama.cpp repeats {' and '.join(GGUF_TOKENIZERS)}")
    return Door("gguf", True, f"opens in llama.cpp as {architecture_of(config)}")


def _onnx(config: ModelConfig) -> Door:
    cache = ", with a cache" if isinstance(config, GPTConfig) else ""
    return Door("onnx", True, f"opens in onnxruntime{cache}")
