"""Model configs: frozen dataclasses, validated on creation and saved in full.

``BlockConfig`` has the settings of one block, ``ModelConfig`` adds those shared by all architectures, and each
architecture has a subclass. Fields that can be derived from others (``d_head``, ``n_kv_heads``, ``d_ff``, ...) may be
omitted; they are computed on creation and saved as ordinary values. Nothing here imports torch.
"""

import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any, ClassVar, Literal, Self

from kotha.errors import ConfigError, nearest
from kotha.model.fields import check_names, check_types, derived, indivisible, roomier_width

Norm = Literal["layer", "rms"]
NormOrder = Literal["pre", "post"]
Activation = Literal["relu", "gelu", "gelu-tanh", "swiglu"]
Positions = Literal["learned", "sinusoidal", "sinusoidal-halves", "rotary", "none"]
Initialization = Literal["gpt2", "xavier"]
# The number of layers in each stack, and the names of the attention modules in each layer.
Stacks = Mapping[str, tuple[int, tuple[str, ...]]]
# Heads and layers are created one by one, so limits keep a corrupted file or a typo from requesting a billion of them.
MOST_HEADS, MOST_LAYERS = 4096, 1024
_TOO_MANY = "{name}={value} is too large; use 1 to {most:,}"
_BAD_RATE = "{name}={value} is out of range; use 0 (off) to 0.9"
_MOST = {"n_heads": MOST_HEADS, "n_layers": MOST_LAYERS, "n_decoder_layers": MOST_LAYERS}
# Constraints on numbers in addition to their type, each with its error message.
_LIMITS: dict[str, tuple[Callable[[Any], bool], str]] = {
    **{name: (partial(operator.ge, most), _TOO_MANY) for name, most in _MOST.items()},
    "dropout": (lambda share: 0 <= share < 1, _BAD_RATE),
    "attention_dropout": (lambda share: 0 <= share < 1, _BAD_RATE),
    "norm_eps": (lambda eps: 0 < eps < 1, "{name}={value} must be a small positive number; try 1e-5"),
    "rotary_base": (lambda base: base > 1, "{name}={value} must be greater than 1; 10000 is typical"),
}


@dataclass(frozen=True, kw_only=True)
class BlockConfig:
    """One block: attention and feed-forward, each with a norm and a residual connection.

    >>> BlockConfig(d_model=512, n_heads=8).d_head
    64
    """

    d_model: int  # width of the vector at each position
    n_heads: int  # query heads in each attention
    n_kv_heads: int = derived()
    """Key and value heads; fewer than n_heads means grouped-query attention (default: n_heads)."""
    d_head: int = derived()  # width of one head (default: d_model / n_heads)
    d_ff: int = derived()  # inner width of the feed-forward (default: 4 d_model)
    activation: Activation = "gelu"  # activation between the feed-forward matrices; swiglu has a third matrix, the gate
    norm: Norm = "layer"  # LayerNorm (with bias) or RMSNorm (without)
    norm_order: NormOrder = "pre"  # norm before each part (GPT-2, ViT) or after its residual sum (2017, BERT)
    norm_eps: float = 1e-5  # added to the variance before taking the square root
    qk_norm: bool = False  # RMSNorm on the queries and keys of each head
    attention_bias: bool = True  # biases in the four attention matrices
    feedforward_bias: bool = True  # biases in the feed-forward matrices
    dropout: float = 0.0  # dropout rate for embeddings and for the output of each part
    attention_dropout: float = 0.0  # dropout rate for attention weights

    def __post_init__(self) -> None:
        check_types(self)
        for name, value in self._derived().items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)  # frozen from here on
        for name, (fits, wrong) in _LIMITS.items():
            if hasattr(self, name) and not fits(getattr(self, name)):
                raise ConfigError(wrong, name=name, value=getattr(self, name), most=_MOST.get(name))
        self._check()

    def _derived(self) -> dict[str, Any]:
        """Return the derived fields, computed from the others."""
        if self.d_head is None and self.d_model % self.n_heads:
            raise indivisible(self, "d_model", "n_heads", roomier_width(self.d_model, self.n_heads))
        return {"n_kv_heads": self.n_heads, "d_head": self.d_model // self.n_heads, "d_ff": 4 * self.d_model}

    def _check(self) -> None:
        """Raise an error for values that are incompatible with each other."""
        if self.n_heads % self.n_kv_heads:
            raise indivisible(self, "n_heads", "n_kv_heads")

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed; derived fields are recomputed.

        >>> BlockConfig(d_model=512, n_heads=8).replace(d_model=256).d_head
        32
        """
        check_names(type(self), changes)
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        derived = {name: None for name, value in self._derived().items() if values[name] == value}
        return type(self)(**{**values, **derived, **changes})


@dataclass(frozen=True, kw_only=True)
class ModelConfig(BlockConfig):
    """Settings of every architecture: a stack of blocks and an initialization."""

    family: ClassVar[str]

    n_layers: int  # blocks in the stack
    final_norm: bool = derived()
    """A norm after the last block (default: only with norm_order="pre")."""
    initialization: Initialization = "gpt2"  # initial values of the weights; see initialization.py
    removed_heads: tuple[str, ...] = ()
    """Names of pruned heads, such as blocks.0.attention.3; see pruning.py. Numbers refer to the unpruned model, so a
    head keeps its name when others are removed."""

    def _derived(self) -> dict[str, Any]:
        return {**super()._derived(), "final_norm": self.norm_order == "pre"}

    def _check(self) -> None:
        super()._check()
        object.__setattr__(self, "removed_heads", _in_order(self.removed_heads, self.attentions(), self.n_heads))

    def stacks(self) -> Stacks:
        """Return the number of layers in each stack, and the names of a layer's attention modules."""
        return {"blocks": (self.n_layers, ("attention",))}

    def attentions(self) -> list[str]:
        """Return the names of all attention modules in order: blocks.0.attention, blocks.1.attention, ..."""
        stacks = self.stacks().items()
        return [f"{stack}.{layer}.{part}" for stack, (n, parts) in stacks for layer in range(n) for part in parts]

    def heads_of(self, attention: str) -> list[int]:
        """Return the numbers of the remaining heads in an attention module."""
        removed = set(self.removed_heads)
        return [number for number in range(self.n_heads) if f"{attention}.{number}" not in removed]

    def key_heads_of(self, attention: str) -> list[int]:
        """Return the numbers of the key heads that the remaining heads in an attention module use."""
        return sorted({head * self.n_kv_heads // self.n_heads for head in self.heads_of(attention)})

    def to_dict(self) -> dict[str, Any]:
        """Return the complete config as JSON types."""
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        return {"family": self.family, **values}


def _in_order(removed: Sequence[str], attentions: Sequence[str], n_heads: int) -> tuple[str, ...]:
    """Return the names of removed heads, without duplicates, in model order; each module must keep one head."""
    positions = {name: position for position, name in enumerate(attentions)}
    numbers = set(map(str, range(n_heads)))
    found: set[tuple[int, int]] = set()
    for head in removed:
        attention, _, number = head.rpartition(".")
        if attention not in positions or number not in numbers:
            message = "unknown head {name!r}; each attention module has heads 0 to {last}, with names such as {first}.0"
            raise ConfigError(message, name=head, last=n_heads - 1, first=attentions[0])
        found.add((positions[attention], int(number)))
    for position, count in Counter(position for position, _ in found).items():
        if count == n_heads:
            raise ConfigError(
                "all {n} heads of {attention} would be removed; leave at least one",
                n=n_heads,
                attention=attentions[position],
            )
    return tuple(f"{attentions[position]}.{number}" for position, number in sorted(found))


@dataclass(frozen=True, kw_only=True)
class TextConfig(ModelConfig):
    """An architecture whose input is tokens."""

    vocab_size: int  # tokens in the vocabulary
    context_length: int  # largest number of tokens in one input
    positions: Positions = "learned"  # how positions are encoded
    rotary_base: float = 10_000.0  # longest wavelength of rotary positions, divided by 2 pi

    def _check(self) -> None:
        super()._check()
        pairs = {"rotary": "d_head", "sinusoidal": "d_model", "sinusoidal-halves": "d_model"}.get(self.positions)
        if pairs is not None and getattr(self, pairs) % 2:
            raise ConfigError(
                "{name}={value} must be even for {positions} positions; try {even}",
                name=pairs,
                value=getattr(self, pairs),
                positions=self.positions,
                even=getattr(self, pairs) + 1,
            )


@dataclass(frozen=True, kw_only=True)
class GPTConfig(TextConfig):
    """Decoder only: each token attends to itself and earlier tokens."""

    family: ClassVar[str] = "gpt"

    tied_head: bool = True  # the head uses the token embedding's matrix
    head_bias: bool = False  # a bias for each token in the head


@dataclass(frozen=True, kw_only=True)
class BERTConfig(TextConfig):
    """Encoder only: every token attends to all tokens."""

    family: ClassVar[str] = "bert"

    norm_order: NormOrder = "post"
    norm_eps: float = 1e-12
    n_segments: int = 2  # segments (first or second sentence) that a token can belong to


@dataclass(frozen=True, kw_only=True)
class _Labelled:
    """The fields that a text classifier adds to its body's config."""

    labels: tuple[str, ...]  # names of the classes, in the order of the head's outputs

    def _check(self) -> None:
        super()._check()  # type: ignore[misc]  # the body's
        object.__setattr__(self, "labels", _checked_labels(self.labels))


@dataclass(frozen=True, kw_only=True)
class GPTClassifierConfig(_Labelled, GPTConfig):
    """A GPT that predicts the class of a text instead of the next token."""

    family: ClassVar[str] = "gpt-classifier"
    marks: ClassVar[tuple[str, ...]] = ("eos",)  # roles of the special tokens around a text; the last follows it


@dataclass(frozen=True, kw_only=True)
class BERTClassifierConfig(_Labelled, BERTConfig):
    """A BERT that predicts the class of a text instead of masked words."""

    family: ClassVar[str] = "bert-classifier"
    marks: ClassVar[tuple[str, ...]] = ("cls", "sep")


ClassifierConfig = GPTClassifierConfig | BERTClassifierConfig


def _checked_labels(labels: Sequence[str]) -> tuple[str, ...]:
    if len(set(labels)) < max(2, len(labels)) or not all(label.strip() for label in labels):
        raise ConfigError(
            "labels={labels} is not valid; use at least 2 labels, distinct and not empty", labels=str(list(labels))
        )
    return tuple(labels)


@dataclass(frozen=True, kw_only=True)
class Seq2SeqConfig(TextConfig):
    """Encoder and decoder: a target token attends to itself, to earlier target tokens, and to the whole source."""

    family: ClassVar[str] = "seq2seq"

    norm_order: NormOrder = "post"
    activation: Activation = "relu"
    positions: Positions = "sinusoidal"
    initialization: Initialization = "xavier"
    n_layers: int = 6
    n_decoder_layers: int = derived()  # blocks in the decoder (default: n_layers)
    head_bias: bool = False  # a bias for each token in the head

    def _derived(self) -> dict[str, Any]:
        return {**super()._derived(), "n_decoder_layers": self.n_layers}

    def stacks(self) -> Stacks:
        """A decoder layer has self-attention, then cross-attention (``cross``) to the source."""
        return {"encoder": (self.n_layers, ("attention",)), "decoder": (self.n_decoder_layers, ("attention", "cross"))}


@dataclass(frozen=True, kw_only=True)
class ViTConfig(ModelConfig):
    """An encoder whose tokens are image patches."""

    family: ClassVar[str] = "vit"

    norm_eps: float = 1e-12
    image_size: int  # height and width of an image, in pixels
    patch_size: int  # height and width of a patch, in pixels
    n_channels: int = 3  # color channels of a pixel
    n_classes: int  # number of classes
    labels: tuple[str, ...] = ()  # names of the classes (default: their numbers)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes, in the order of the head's outputs."""
        return self.labels or tuple(str(number) for number in range(self.n_classes))

    def _check(self) -> None:
        super()._check()
        object.__setattr__(self, "labels", _checked_labels(self.labels) if self.labels else ())
        if self.labels and len(self.labels) != self.n_classes:
            raise ConfigError(
                "{n} labels for n_classes={n_classes}; name every class or none",
                n=len(self.labels),
                n_classes=self.n_classes,
            )
        if self.image_size % self.patch_size:
            wider = -(-self.image_size // self.patch_size) * self.patch_size
            raise indivisible(self, "image_size", "patch_size", wider)


FAMILIES: dict[str, type[ModelConfig]] = {
    config.family: config
    for config in (GPTConfig, BERTConfig, Seq2SeqConfig, ViTConfig, GPTClassifierConfig, BERTClassifierConfig)
}


def classifying(config: ModelConfig, labels: Sequence[str]) -> ClassifierConfig:
    """Return a classifier config with this config's body.

    >>> from kotha.model.presets import preset
    >>> classifying(preset("pocket-bert"), ["good", "bad"]).family
    'bert-classifier'
    """
    kinds = {"gpt": GPTClassifierConfig, "bert": BERTClassifierConfig}
    kind: Any = kinds.get(config.family.removesuffix("-classifier"))
    if kind is None:
        raise ConfigError("a {family} model cannot classify text; use bert or gpt", family=config.family)
    values = {each.name: getattr(config, each.name) for each in fields(config)}
    made: ClassifierConfig = kind(**{**values, "labels": tuple(labels)})
    return made


def config_from_dict(values: dict[str, Any]) -> ModelConfig:
    """Create a config from the output of ``to_dict``; raise an error for unknown or missing keys."""
    values = dict(values)
    family = values.pop("family", None)
    if not isinstance(family, str) or family not in FAMILIES:
        raise ConfigError(
            "unknown model family {family}{nearest}",
            family=repr(family),
            nearest=nearest(str(family), FAMILIES),
        )
    kind = FAMILIES[family]
    check_names(kind, values, complete=True)
    return kind(**values)
