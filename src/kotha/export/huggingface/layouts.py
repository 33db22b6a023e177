"""The layouts of Hugging Face that our models fit, and what each has that cannot be chosen.

A layout is one architecture of ``transformers``, as data: which of our settings it calls what, which it always has, and
which of its own must stand as they do. What a config has that a layout does not is an obstacle, and named. A bias that
a layout always has and a model lacks is none: zeros in its place say the same. What is not here: the names of weights
(``weight_names.py``), and ``config.json`` itself (``config.py``).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kotha.export.huggingface import weight_names
from kotha.export.obstacles import UnsupportedError, in_a_row
from kotha.export.weight_map import WeightMap
from kotha.i18n.message import Message, Text
from kotha.model.config import (
    BERTClassifierConfig,
    BERTConfig,
    GPTClassifierConfig,
    GPTConfig,
    ModelConfig,
    Seq2SeqConfig,
    ViTConfig,
)

# What a setting of ours may be, the usual first; and why, as the end of "GPT-2 …".
Rule = tuple[tuple[Any, ...], Text]


@dataclass(frozen=True)
class Layout:
    """One architecture of transformers."""

    title: str
    model_type: str
    architecture: str
    family: type[ModelConfig]
    weights: WeightMap
    settings: Mapping[str, tuple[str, Any]]
    """Ours, with theirs and what transformers takes where a config.json leaves it out."""
    always: Mapping[str, Rule]  # ours that cannot be chosen there
    fills: tuple[str, ...] = ()  # biases that are always there, as zeros where a model has none
    fixed: Mapping[str, Any] = field(default_factory=dict)  # theirs that must have this value
    twins: Mapping[str, str] = field(default_factory=dict)  # theirs that must have the value of another of theirs
    whole_heads: bool = True  # heads share the model's width evenly, and each has its own key

    def obstacles(self, config: ModelConfig) -> list[Text]:
        """What a config has that this layout does not, each in words; empty where it fits."""
        title = self.title
        found: list[Text] = [
            Message(
                "{name}={value}: {title} {because}",
                name=name,
                value=_shown(getattr(config, name)),
                title=title,
                because=because,
            )
            for name, (allowed, because) in self.always.items()
            if getattr(config, name) not in allowed
        ]
        if self.whole_heads and config.n_kv_heads != config.n_heads:
            found.append(
                Message(
                    "n_kv_heads={n}: {title} has a key head for each of its heads", n=config.n_kv_heads, title=title
                )
            )
        if self.whole_heads and config.d_head * config.n_heads != config.d_model:
            found.append(
                Message(
                    "d_head={n}: {title} divides d_model={d_model} among its heads",
                    n=config.d_head,
                    title=title,
                    d_model=config.d_model,
                )
            )
        if getattr(config, "removed_heads", ()):
            found.append(
                Message("removed_heads: {title} has all of its heads; export the model before pruning", title=title)
            )
        return found

    def full(self, config: ModelConfig) -> ModelConfig:
        """The config with every bias that this layout always has."""
        return config.replace(**dict.fromkeys(self.fills, True))


# Our activations by the names of transformers; the first of a kind is the one that is written.
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "relu": "relu",
    "silu": "swiglu",
}

_NORM_FIRST = Message("normalises before each part and once after the last")
_NORM_LAST = Message("normalises after each sum and not once more")
_BEFORE: dict[str, Rule] = {"norm_order": (("pre",), _NORM_FIRST), "final_norm": ((True,), _NORM_FIRST)}
_AFTER: dict[str, Rule] = {"norm_order": (("post",), _NORM_LAST), "final_norm": ((False,), _NORM_LAST)}
_LAYER_NORM: dict[str, Rule] = {"norm": (("layer",), Message("has LayerNorm"))}
_NO_QK_NORM: dict[str, Rule] = {"qk_norm": ((False,), Message("has no norm on queries and keys"))}
_NO_HEAD_BIAS: dict[str, Rule] = {"head_bias": ((False,), Message("has no bias in its head"))}
_LEARNED: dict[str, Rule] = {"positions": (("learned",), Message("learns its positions"))}
_BIASES = ("attention_bias", "feedforward_bias")


def _ungated(*activations: str) -> dict[str, Rule]:
    *most, last = activations
    because = Message("has no gate in its feed-forward; {names} and {last} fit", names=most, last=last)
    return {"activation": (activations, because)}


GPT2 = Layout(
    title="GPT-2",
    model_type="gpt2",
    architecture="GPT2LMHeadModel",
    family=GPTConfig,
    weights=weight_names.GPT2,
    settings={
        "vocab_size": ("vocab_size", 50_257),
        "context_length": ("n_positions", 1024),
        "d_model": ("n_embd", 768),
        "n_layers": ("n_layer", 12),
        "n_heads": ("n_head", 12),
        "d_ff": ("n_inner", None),
        "activation": ("activation_function", "gelu_new"),
        "norm_eps": ("layer_norm_epsilon", 1e-5),
        "dropout": ("resid_pdrop", 0.1),
        "attention_dropout": ("attn_pdrop", 0.1),
        "tied_head": ("tie_word_embeddings", True),
    },
    always=_BEFORE | _LAYER_NORM | _LEARNED | _ungated("gelu-tanh", "gelu", "relu") | _NO_QK_NORM | _NO_HEAD_BIAS,
    fills=_BIASES,
    fixed={"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False, "add_cross_attention": False},
)

_LLAMA_SETTINGS: dict[str, tuple[str, Any]] = {
    "vocab_size": ("vocab_size", 32_000),
    "context_length": ("max_position_embeddings", 2048),
    "d_model": ("hidden_size", 4096),
    "n_layers": ("num_hidden_layers", 32),
    "n_heads": ("num_attention_heads", 32),
    "n_kv_heads": ("num_key_value_heads", None),
    "d_head": ("head_dim", None),
    "d_ff": ("intermediate_size", 11_008),
    "activation": ("hidden_act", "silu"),
    "norm_eps": ("rms_norm_eps", 1e-6),
    "attention_dropout": ("attention_dropout", 0.0),
    "attention_bias": ("attention_bias", False),
    "tied_head": ("tie_word_embeddings", False),
}
_LLAMA_ALWAYS: dict[str, Rule] = {
    **_BEFORE,
    "norm": (("rms",), Message("has RMSNorm")),
    "positions": (("rotary",), Message("turns queries and keys by their positions")),
    "activation": (("swiglu",), Message("has a gate in its feed-forward")),
    **_NO_HEAD_BIAS,
}
LLAMA = Layout(
    title="Llama",
    model_type="llama",
    architecture="LlamaForCausalLM",
    family=GPTConfig,
    weights=weight_names.LLAMA,
    settings={**_LLAMA_SETTINGS, "feedforward_bias": ("mlp_bias", False)},
    always=_LLAMA_ALWAYS | _NO_QK_NORM,
    whole_heads=False,
)
QWEN3 = Layout(
    title="Qwen3",
    model_type="qwen3",
    architecture="Qwen3ForCausalLM",
    family=GPTConfig,
    weights=weight_names.QWEN3,
    settings={
        **_LLAMA_SETTINGS,
        "vocab_size": ("vocab_size", 151_936),
        "context_length": ("max_position_embeddings", 32_768),
        "d_head": ("head_dim", 128),
        "d_ff": ("intermediate_size", 22_016),
        "n_kv_heads": ("num_key_value_heads", 32),
    },
    always={
        **_LLAMA_ALWAYS,
        "qk_norm": ((True,), Message("has a norm on queries and keys")),
        "feedforward_bias": ((False,), Message("has no biases in its feed-forward")),
    },
    fixed={"use_sliding_window": False},
    whole_heads=False,
)

_ENCODER_SETTINGS: dict[str, tuple[str, Any]] = {
    "d_model": ("hidden_size", 768),
    "n_layers": ("num_hidden_layers", 12),
    "n_heads": ("num_attention_heads", 12),
    "d_ff": ("intermediate_size", 3072),
    "activation": ("hidden_act", "gelu"),
    "norm_eps": ("layer_norm_eps", 1e-12),
}
BERT = Layout(
    title="BERT",
    model_type="bert",
    architecture="BertForPreTraining",
    family=BERTConfig,
    weights=weight_names.BERT,
    settings={
        **_ENCODER_SETTINGS,
        "vocab_size": ("vocab_size", 30_522),
        "context_length": ("max_position_embeddings", 512),
        "n_segments": ("type_vocab_size", 2),
        "dropout": ("hidden_dropout_prob", 0.1),
        "attention_dropout": ("attention_probs_dropout_prob", 0.1),
    },
    always=_AFTER
    | _LAYER_NORM
    | _LEARNED
    | {"activation": (("gelu",), Message("shares its activation with the word head, which is gelu here"))}
    | _NO_QK_NORM,
    fills=_BIASES,
    fixed=dict.fromkeys(("is_decoder", "add_cross_attention"), False)
    | {"position_embedding_type": "absolute", "tie_word_embeddings": True},
)
VIT = Layout(
    title="ViT",
    model_type="vit",
    architecture="ViTForImageClassification",
    family=ViTConfig,
    weights=weight_names.VIT,
    settings={
        **_ENCODER_SETTINGS,
        "image_size": ("image_size", 224),
        "patch_size": ("patch_size", 16),
        "n_channels": ("num_channels", 3),
        "dropout": ("hidden_dropout_prob", 0.0),
        "attention_dropout": ("attention_probs_dropout_prob", 0.0),
    },
    always=_BEFORE | _LAYER_NORM | _ungated("gelu", "gelu-tanh", "relu") | _NO_QK_NORM,
    fills=_BIASES,
    fixed={"qkv_bias": True},
)
MARIAN = Layout(
    title="Marian",
    model_type="marian",
    architecture="MarianMTModel",
    family=Seq2SeqConfig,
    weights=weight_names.MARIAN,
    settings={
        "vocab_size": ("vocab_size", 58_101),
        "context_length": ("max_position_embeddings", 1024),
        "d_model": ("d_model", 1024),
        "n_layers": ("encoder_layers", 12),
        "n_decoder_layers": ("decoder_layers", 12),
        "n_heads": ("encoder_attention_heads", 16),
        "d_ff": ("encoder_ffn_dim", 4096),
        "activation": ("activation_function", "gelu"),
        "dropout": ("dropout", 0.1),
        "attention_dropout": ("attention_dropout", 0.0),
    },
    always={
        **_AFTER,
        **_LAYER_NORM,
        "norm_eps": ((1e-5,), Message("adds 1e-05 before the root")),
        "positions": (("sinusoidal-halves",), Message("has sines before cosines (sinusoidal-halves)")),
        **_ungated("relu", "gelu", "gelu-tanh"),
        **_NO_QK_NORM,
    },
    fills=(*_BIASES, "head_bias"),
    fixed={"scale_embedding": True, "share_encoder_decoder_embeddings": True, "tie_word_embeddings": True}
    | {"static_position_embeddings": True, "normalize_before": False, "normalize_embedding": False}
    | {"add_final_layer_norm": False},
    twins={
        "decoder_attention_heads": "encoder_attention_heads",
        "decoder_ffn_dim": "encoder_ffn_dim",
        "decoder_vocab_size": "vocab_size",
    },
)


def _classifying(layout: Layout, family: type[ModelConfig], architecture: str, head: str) -> Layout:
    """A layout's body with a head for classes; what its own head has or lacks is no obstacle then."""
    always = {name: rule for name, rule in layout.always.items() if name != "head_bias"}
    weights = weight_names.classifying(layout.weights, head)
    return replace(layout, architecture=architecture, family=family, weights=weights, always=always)


CLASSIFIERS: tuple[Layout, ...] = (
    _classifying(GPT2, GPTClassifierConfig, "GPT2ForSequenceClassification", "score.*"),
    _classifying(QWEN3, GPTClassifierConfig, "Qwen3ForSequenceClassification", "score.*"),
    _classifying(LLAMA, GPTClassifierConfig, "LlamaForSequenceClassification", "score.*"),
    _classifying(BERT, BERTClassifierConfig, "BertForSequenceClassification", "classifier.*"),
)
LAYOUTS: tuple[Layout, ...] = (GPT2, QWEN3, LLAMA, BERT, MARIAN, VIT)


def choose_layout(config: ModelConfig) -> Layout:
    """The layout that a config fits; refused with the settings in the way of the nearest."""
    family = [layout for layout in (*LAYOUTS, *CLASSIFIERS) if type(config) is layout.family]
    fitting = next((layout for layout in family if not layout.obstacles(config)), None)
    if fitting is None:
        nearest = min((layout.obstacles(config) for layout in family), key=len, default=[Message("its family")])
        raise UnsupportedError("no Hugging Face layout fits this model: {because}", because=in_a_row(nearest))
    return fitting


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
