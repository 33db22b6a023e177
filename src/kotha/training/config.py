"""All settings of a training run, validated on construction, and recipes: named sets of settings.

The field names are the keys in recipes and TOML files and, with dashes, the options of the command. ``None`` disables a
setting or, where the comment says so, selects its value automatically.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from kotha.errors import ConfigError, nearest
from kotha.i18n.message import Message
from kotha.model.config import ClassifierConfig, GPTConfig, ModelConfig, TextConfig, ViTConfig
from kotha.model.fields import LARGEST_SEED, at_least, check_types

Optimizer = Literal["adamw", "muon"]
Schedule = Literal["cosine", "stable", "constant", "inverse-sqrt"]
Sampling = Literal["documents", "offsets"]
Precision = Literal["auto", "float32", "bfloat16", "float16"]
Compile = Literal["auto", "on", "off"]
ClassWeights = Literal["equal", "balanced"]
Augment = Literal["none", "move", "mirror"]
Initial = Literal["random", "bigrams"]


# As large as any published batch, and far larger than the models in this package need.
_LARGEST_BATCH = 1 << 16


_BOUNDS: tuple[tuple[str, Callable[[Any], bool], Message], ...] = (
    (
        "batch_size micro_batch_size",
        lambda value: value <= _LARGEST_BATCH,
        Message("at most {most:,}", most=_LARGEST_BATCH),
    ),
    ("learning_rate muon_learning_rate gradient_clip spike lora_alpha", lambda value: value > 0, Message("above 0")),
    (
        "beta1 beta2 ema_decay label_smoothing dropout",
        lambda value: 0 <= value < 1,
        Message("at least 0 and below 1"),
    ),
    ("weight_decay", lambda value: value >= 0, Message("0 or more")),
    ("floor teacher_share backwards ngram_share", lambda value: 0 <= value <= 1, Message("from 0 to 1")),
)


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """All settings of a training run."""

    steps: int = 2000  # optimizer steps
    batch_size: int = 64  # sequences per step, over all processes
    micro_batch_size: int | None = None  # sequences per forward pass; None: the largest that fits in memory
    context_length: int | None = None  # tokens per sequence; None: the model's context length
    sampling: Sampling = "documents"  # documents: shuffled, each token once per epoch; offsets: random positions
    # random seed for the initial weights, the order of the data, and dropout
    seed: int = at_least(0, default=0, most=LARGEST_SEED)
    initial: Initial = "random"  # bigrams: initialize embeddings and head from the counts of token pairs

    optimizer: Optimizer = "adamw"  # muon: Muon for the hidden matrices, AdamW for the rest
    learning_rate: float = 3e-4  # peak learning rate of AdamW
    muon_learning_rate: float = 3e-3  # peak learning rate of Muon, scaled to match AdamW's updates
    weight_decay: float = 0.1  # applies to matrices and embeddings, not to norms and biases
    beta1: float = 0.9  # AdamW's decay rate of the first moment
    beta2: float = 0.95  # AdamW's decay rate of the second moment
    gradient_clip: float | None = 1.0  # largest gradient norm; None: no clipping

    schedule: Schedule = "cosine"
    """After warm-up: cosine to the floor, stable with a final decay (WSD), constant, or inverse-sqrt (2017)."""
    warmup_steps: int = at_least(0, default=100)  # steps over which the learning rate rises from 0
    decay_steps: int | None = None  # for stable: steps of the final decay; None: a fifth of all steps
    floor: float = 0.1  # final learning rate as a share of the peak

    dropout: float | None = None  # overrides the model's dropout
    label_smoothing: float = 0.0  # share of each target that is spread over the vocabulary
    class_weights: ClassWeights = "equal"  # balanced: weight examples inversely to the frequency of their class
    augment: Augment = "none"  # images only; move: rotate, shift and scale; mirror: also flip half of them
    backwards: float = 0.0  # share of sequences that are reversed, except in the last quarter of the steps
    lora: int | None = None  # LoRA rank; all other weights are frozen; None: train all weights
    lora_alpha: float = 16.0  # the LoRA update is scaled by alpha / rank
    teachers: tuple[str, ...] = ()  # folders of trained models for distillation
    teacher_share: float = 0.8  # share of the loss computed from the teachers' predictions
    ngram_share: float = 0.0  # share of each target that is sampled from an n-gram model of the text
    ema_decay: float | None = None  # decay of the weight average, which is evaluated and saved; None: no average
    ema_every: int = 1  # steps between two updates of the average

    evaluate_every: int = 250  # steps between two evaluations
    evaluate_tokens: int | None = None  # validation tokens per evaluation; None: all
    patience: int | None = None  # stop after this many evaluations without improvement; None: never
    checkpoint_every: int | None = None  # steps between two checkpoints; None: at each evaluation
    keep_checkpoints: int = 2  # number of recent checkpoints to keep, besides the best

    precision: Precision = "auto"  # data type of matrix products; auto: chosen for the machine
    compile: Compile = "auto"  # whether to compile the model; auto: only on GPUs
    spike: float | None = 3.0  # stop when the loss exceeds its recent average by this many nats; None: never

    def __post_init__(self) -> None:
        if isinstance(self.teachers, list):  # from JSON or TOML
            object.__setattr__(self, "teachers", tuple(self.teachers))
        check_types(self)
        for names, is_valid, wanted in _BOUNDS:
            for name in names.split():
                value = getattr(self, name)
                if value is not None and not is_valid(value):
                    raise ConfigError("{name}={value} must be {wanted}", name=name, value=value, wanted=wanted)

    def change(self, **changes: Any) -> "TrainConfig":
        """Return a copy with some settings changed; the error for an unknown name suggests the nearest known one."""
        check_names(changes, [each.name for each in fields(self)])
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Return all settings, ready for JSON."""
        return asdict(self)


def check_names(given: Iterable[str], known: Collection[str]) -> None:
    """Raise an error for an unknown setting."""
    for name in given:
        if name not in known:
            raise ConfigError("unknown setting {name!r}{nearest}", name=name, nearest=nearest(name, known))


_ONLY_FOR: tuple[tuple[str, Any, Message], ...] = (
    ("teachers", GPTConfig, Message("gpt models, which predict the next token")),
    ("backwards", GPTConfig, Message("gpt models, which predict the next token")),
    ("ngram_share", GPTConfig, Message("gpt models, which predict the next token")),
    ("initial", GPTConfig, Message("gpt models, which predict the next token")),
    ("augment", ViTConfig, Message("images")),
    ("class_weights", ViTConfig | ClassifierConfig, Message("text and image classifiers")),
    ("lora", TextConfig, Message("text models")),
)


def check_settings(model: ModelConfig, config: TrainConfig) -> None:
    """Raise an error for a setting that does not apply to this model family."""
    for name, kinds, families in _ONLY_FOR:
        if getattr(config, name) != TrainConfig.__dataclass_fields__[name].default and not isinstance(model, kinds):
            raise ConfigError("{name} applies only to {learners}; remove it", name=name, learners=families)


# -- recipes -----------------------------------------------------------------------------------------------------------


RECIPES: dict[str, dict[str, Any]] = {
    "course": {
        "steps": 20_000,
        "batch_size": 64,
        "sampling": "offsets",
        "optimizer": "adamw",
        "learning_rate": 3e-4,
        "beta2": 0.999,
        "weight_decay": 0.01,
        "gradient_clip": None,
        "schedule": "cosine",
        "warmup_steps": 1000,
        "floor": 0.1,
        "evaluate_every": 500,
    },
    "classic": {"optimizer": "adamw", "learning_rate": 6e-4, "weight_decay": 0.1, "warmup_steps": 200},
    "modern": {
        "optimizer": "muon",
        "learning_rate": 1e-3,
        "muon_learning_rate": 3e-3,
        "weight_decay": 0.5,
        "schedule": "stable",
        "warmup_steps": 50,
        "floor": 0.02,
        "decay_steps": None,
        "ema_decay": 0.99,
        "ema_every": 4,
        "batch_size": 32,
    },
}


def recipe(name: str, **changes: Any) -> TrainConfig:
    """Return a recipe's settings with some changes; a warm-up longer than most of the run is shortened.

    >>> [recipe("course", steps=steps).warmup_steps for steps in (20_000, 500)]
    [1000, 50]
    """
    if name not in RECIPES:
        raise ConfigError("unknown recipe {name!r}{nearest}", name=name, nearest=nearest(name, RECIPES))
    config = TrainConfig().change(**{**RECIPES[name], **changes})
    if "warmup_steps" in changes or config.warmup_steps <= config.steps // 2:
        return config
    return config.change(warmup_steps=config.steps // 10)
