"""Which of llama.cpp's architectures a model is, and its weights under the names that are used there.

Classic GPTs (LayerNorm, learned positions, GELU) are its ``gpt2``; modern ones with QK-norm its ``qwen3``, without
QK-norm its ``llama``. Three things are not as they are here. ``gpt2`` wants biases everywhere, so a missing one is
written as zeros. ``gpt2`` has one matrix for queries, keys and values. And ``llama`` turns neighbouring numbers of a
head, where Llama's own weights, and ours, turn the first half against the second: its queries and keys are dealt out
anew (``qwen3`` is not: it turns halves).
"""

from torch import Tensor

from kotha.artifacts.model_folder import unique_weights
from kotha.export.obstacles import UnsupportedError, in_a_row
from kotha.export.weight_map import THREE_IN_ONE, Renamed, WeightMap, with_zeros
from kotha.i18n.message import Message, Text
from kotha.model.config import ClassifierConfig, GPTConfig, ModelConfig
from kotha.model.gpt import GPT

_OURS, _THEIRS = "stack.blocks.{n}.", "blk.{n}."
_QUERY, _KEY, _VALUE = (f"{_OURS}attention.{part}.*" for part in ("query", "key", "value"))
_ALL = (
    Renamed("tokens.weight", "token_embd.weight"),
    Renamed("head.weight", "output.weight"),
    Renamed("stack.norm.*", "output_norm.*"),
    Renamed(_OURS + "attention_norm.*", _THEIRS + "attn_norm.*"),
    Renamed(_OURS + "attention.output.*", _THEIRS + "attn_output.*"),
    Renamed(_OURS + "feedforward_norm.*", _THEIRS + "ffn_norm.*"),
    Renamed(_OURS + "feedforward.up.*", _THEIRS + "ffn_up.*"),
    Renamed(_OURS + "feedforward.down.*", _THEIRS + "ffn_down.*"),
)
_CLASSIC = WeightMap(
    (
        *_ALL,
        Renamed("positions.table.weight", "position_embd.weight"),
        Renamed((_QUERY, _KEY, _VALUE), _THEIRS + "attn_qkv.*", THREE_IN_ONE),
    )
)
_MODERN = WeightMap(
    (
        *_ALL,
        Renamed(_QUERY, _THEIRS + "attn_q.*"),
        Renamed(_KEY, _THEIRS + "attn_k.*"),
        Renamed(_VALUE, _THEIRS + "attn_v.*"),
        Renamed(_OURS + "attention.query_norm.*", _THEIRS + "attn_q_norm.*"),
        Renamed(_OURS + "attention.key_norm.*", _THEIRS + "attn_k_norm.*"),
        Renamed(_OURS + "feedforward.gate.*", _THEIRS + "ffn_gate.*"),
    )
)


def obstacles(config: ModelConfig) -> list[Text]:
    """The settings that keep a config out of GGUF, each with what would open the door; none where it is open.

    >>> from kotha.model.presets import preset
    >>> obstacles(preset("bangla-58m")), str(obstacles(preset("vit-digits"))[0])
    ([], "family='vit': GGUF takes GPT models; export this one to hf or onnx")
    """
    if not isinstance(config, GPTConfig) or isinstance(config, ClassifierConfig):
        targets = "hf" if isinstance(config, ClassifierConfig) else Message("hf or onnx")
        return [
            Message(
                "family={family!r}: GGUF takes GPT models; export this one to {targets}",
                family=config.family,
                targets=targets,
            )
        ]
    wanted: dict[str, tuple[object, ...]] = {"norm_order": ("pre",), "final_norm": (True,), "head_bias": (False,)}
    if config.norm == "layer":
        wanted |= {"positions": ("learned",), "activation": ("gelu", "gelu-tanh"), "qk_norm": (False,)}
        wanted |= {"n_kv_heads": (config.n_heads,), "d_head": (config.d_model / config.n_heads,)}
    else:
        wanted |= {"positions": ("rotary",), "activation": ("swiglu",)}
        wanted |= {"attention_bias": (False,), "feedforward_bias": (False,)}
    has_it = (
        Message("LayerNorm is llama.cpp's gpt2")
        if config.norm == "layer"
        else Message("RMSNorm is llama.cpp's qwen3 or llama")
    )
    found: list[Text] = [
        Message(
            "{setting}: {has_it}, which has {wanted}",
            setting=f"{name}={getattr(config, name)!r}",
            has_it=has_it,
            wanted=" or ".join(f"{name}={value!r}" for value in values),
        )
        for name, values in wanted.items()
        if getattr(config, name) not in values
    ]
    if config.removed_heads:
        found.append(Message("removed_heads: llama.cpp has all heads; export the model before pruning"))
    return found


def architecture_of(config: ModelConfig) -> str:
    """The name of llama.cpp's architecture for a config; a config that has none is refused with what is in the way.

    >>> from kotha.model.presets import preset
    >>> architecture_of(preset("bangla-58m")), architecture_of(preset("pocket"))
    ('gpt2', 'qwen3')
    """
    found = obstacles(config)
    if found:
        raise UnsupportedError("llama.cpp has no architecture for this model: {because}", because=in_a_row(found))
    if config.norm == "layer":
        return "gpt2"
    return "qwen3" if config.qk_norm else "llama"


def tensors_of(model: GPT) -> dict[str, Tensor]:
    """Every weight in float32 by its name in llama.cpp."""
    architecture, config = architecture_of(model.config), model.config
    ours = {name: weight.float() for name, weight in unique_weights(model).items()}
    if architecture == "gpt2":
        ours = with_zeros(ours, config.replace(attention_bias=True, feedforward_bias=True))
    if architecture == "llama":
        turned = ("attention.query.weight", "attention.key.weight")
        ours |= {name: _neighbours(ours[name], config.d_head) for name in ours if name.endswith(turned)}
    return (_CLASSIC if architecture == "gpt2" else _MODERN).to_theirs(ours, config)


def _neighbours(weight: Tensor, d_head: int) -> Tensor:
    """Put the two numbers that are turned together side by side: (H D, C) -> (H D, C)."""
    halves = weight.view(-1, 2, d_head // 2, weight.shape[-1])
    return halves.transpose(1, 2).reshape(weight.shape)
