"""Which of llama.cpp's architectures a model is, and its weights under the names that are used there.

Classic GPTs (LayerNorm, learned positions, GELU) are its ``gpt2``; modern ones with QK-norm its ``qwen3``, without
QK-norm its ``llama``. Three things are not as they are here. ``gpt2`` wants biases everywhere, so a missing one is
written as zeros. ``gpt2`` has one matrix for queries, keys and values. And ``llama`` turns neighbouring numbers of a
head, where Llama's own weights, and ours, turn the first half against the second: its queries and keys are dealt out
anew (``qwen3`` is not: it turns halves).
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from kotha.errors import ConfigError
from kotha.model.config import GPTConfig, ModelConfig
from kotha.model.gpt import GPT

# Where our parts stand inside a block of llama.cpp's.
_NORMS = {"attn_norm": "attention_norm", "ffn_norm": "feedforward_norm"}
_HEAD_NORMS = {"attn_q_norm": "attention.query_norm", "attn_k_norm": "attention.key_norm"}
_MODERN = {
    "attn_q": "attention.query",
    "attn_k": "attention.key",
    "attn_v": "attention.value",
    "attn_output": "attention.output",
    "ffn_gate": "feedforward.gate",
    "ffn_up": "feedforward.up",
    "ffn_down": "feedforward.down",
}
_CLASSIC = {"attn_output": "attention.output", "ffn_up": "feedforward.up", "ffn_down": "feedforward.down"}


def obstacles(config: ModelConfig) -> list[str]:
    """The settings that keep a config out of GGUF, each with what would open the door; none where it is open.

    >>> from kotha.model.presets import preset
    >>> obstacles(preset("bangla-58m")), obstacles(preset("vit-digits"))
    ([], ["family='vit': GGUF takes GPT models; export this one to hf or onnx"])
    """
    if not isinstance(config, GPTConfig):
        return [f"family={config.family!r}: GGUF takes GPT models; export this one to hf or onnx"]
    wanted: dict[str, tuple[object, ...]] = {"norm_order": ("pre",), "final_norm": (True,), "head_bias": (False,)}
    if config.norm == "layer":
        wanted |= {"positions": ("learned",), "activation": ("gelu", "gelu-tanh"), "qk_norm": (False,)}
        wanted |= {"n_kv_heads": (config.n_heads,), "d_head": (config.d_model / config.n_heads,)}
    else:
        wanted |= {"positions": ("rotary",), "activation": ("swiglu",)}
        wanted |= {"attention_bias": (False,), "feedforward_bias": (False,)}
    named = "LayerNorm is llama.cpp's gpt2" if config.norm == "layer" else "RMSNorm is llama.cpp's qwen3 or llama"
    found = [
        f"{name}={getattr(config, name)!r}: {named}, which has {' or '.join(f'{name}={value!r}' for value in values)}"
        for name, values in wanted.items()
        if getattr(config, name) not in values
    ]
    if config.removed_heads:
        found.append("removed_heads: llama.cpp has all heads; export the model before pruning")
    return found


def architecture_of(config: ModelConfig) -> str:
    """The name of llama.cpp's architecture for a config; a config that has none is refused with what is in the way.

    >>> from kotha.model.presets import preset
    >>> architecture_of(preset("bangla-58m")), architecture_of(preset("pocket"))
    ('gpt2', 'qwen3')
    """
    found = obstacles(config)
    if found:
        raise ConfigError(f"llama.cpp has no architecture for this model: {'; '.join(found)}")
    if config.norm == "layer":
        return "gpt2"
    return "qwen3" if config.qk_norm else "llama"


def tensors_of(model: GPT) -> Iterator[tuple[str, Tensor]]:
    """Every weight in float32 with its name in llama.cpp."""
    architecture = architecture_of(model.config)
    yield "token_embd.weight", _plain(model.tokens.weight)
    if not model.config.tied_head:
        yield "output.weight", _plain(model.head.weight)
    if architecture == "gpt2":
        yield "position_embd.weight", _plain(model.get_parameter("positions.table.weight"))
    yield from _norm("output_norm", model.stack.norm)
    for layer, block in enumerate(model.stack.blocks):
        parts = _classic_parts(block) if architecture == "gpt2" else _modern_parts(block, model.config, architecture)
        for name, tensor in parts:
            yield f"blk.{layer}.{name}", tensor


def _classic_parts(block: nn.Module) -> Iterator[tuple[str, Tensor]]:
    for name, path in _NORMS.items():
        yield from _norm(name, block.get_submodule(path))
    three = [block.get_submodule(f"attention.{part}") for part in ("query", "key", "value")]
    yield "attn_qkv.weight", torch.cat([_plain(each.get_parameter("weight")) for each in three])
    yield "attn_qkv.bias", torch.cat([_bias(each) for each in three])
    for name, path in _CLASSIC.items():
        part = block.get_submodule(path)
        yield f"{name}.weight", _plain(part.get_parameter("weight"))
        yield f"{name}.bias", _bias(part)


def _modern_parts(block: nn.Module, config: GPTConfig, architecture: str) -> Iterator[tuple[str, Tensor]]:
    norms = _NORMS | (_HEAD_NORMS if config.qk_norm else {})
    for name, path in norms.items():
        yield from _norm(name, block.get_submodule(path))
    for name, path in _MODERN.items():
        weight = _plain(block.get_submodule(path).get_parameter("weight"))
        turned = architecture == "llama" and name in ("attn_q", "attn_k")
        yield f"{name}.weight", _neighbours(weight, config.d_head) if turned else weight


def _norm(name: str, norm: nn.Module) -> Iterator[tuple[str, Tensor]]:
    for part, tensor in norm.named_parameters():
        yield f"{name}.{part}", _plain(tensor)


def _neighbours(weight: Tensor, d_head: int) -> Tensor:
    """Put the two numbers that are turned together side by side: (H D, C) -> (H D, C)."""
    halves = weight.view(-1, 2, d_head // 2, weight.shape[-1])
    return halves.transpose(1, 2).reshape(weight.shape)


def _bias(part: nn.Module) -> Tensor:
    bias, weight = getattr(part, "bias", None), part.get_parameter("weight")
    return torch.zeros(weight.shape[0]) if bias is None else _plain(bias)


def _plain(parameter: Tensor) -> Tensor:
    return parameter.detach().float().cpu().contiguous()
