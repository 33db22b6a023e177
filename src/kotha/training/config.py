"""How a model is trained: every setting of a run, checked and saved whole, and recipes: settings that go together.

The names are the keys of a recipe, of a TOML file and, with dashes, of the command's flags. ``None`` means off, or
"look at the machine" where that is said.
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


# As large as any that was ever reported, far above what this package's models gain from.
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
    ("floor teacher_share backwards", lambda value: 0 <= value <= 1, Message("from 0 to 1")),
)


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """All settings of one run."""

    steps: int = 2000  # updates of the weights
    batch_size: int = 64  # sequences in one update, over all machines together
    micro_batch_size: int | None = None  # sequences that go through the model at once; None finds what fits
    context_length: int | None = None  # tokens in a sequence; None takes the model's
    sampling: Sampling = "documents"  # each token once an epoch, shuffled anew; offsets: random places, as the course
    seed: int = at_least(
        0, default=0, most=LARGEST_SEED
    )  # decides the first weights, the order of the data, and dropout

    optimizer: Optimizer = "adamw"  # adamw, or muon for the matrices with adamw for the rest
    learning_rate: float = 3e-4  # largest learning rate of adamw
    muon_learning_rate: float = 3e-3  # largest learning rate of muon, scaled to match adamw's
    weight_decay: float = 0.1  # pull of the matrices towards zero; norms and biases have none
    beta1: float = 0.9  # memory of adamw for the direction
    beta2: float = 0.95  # memory of adamw for the size
    gradient_clip: float | None = 1.0  # longest gradient; None for no limit

    schedule: Schedule = "cosine"
    """After the warm-up: cosine to the floor, stable with a decay at the end, constant, or inverse-sqrt (of 2017)."""
    warmup_steps: int = at_least(0, default=100)  # steps in which the learning rate grows from nothing
    decay_steps: int | None = None  # for stable: steps of the last decay; None for a fifth of all
    floor: float = 0.1  # share of the learning rate that is left at the end

    dropout: float | None = None  # overrides the model's dropout
    label_smoothing: float = 0.0  # share of each target spread over the vocabulary
    class_weights: ClassWeights = "equal"  # balanced: examples of rare classes count more
    augment: Augment = "none"  # images: move turns, shifts and scales each a little; mirror also flips half of them
    backwards: float = 0.0  # share of the sequences read from their end, but in the last quarter of the steps
    lora: int | None = None  # rank of what is learned beside the weights, which then stay (LoRA); None: all learns
    lora_alpha: float = 16.0  # what is learned beside them counts alpha / rank times
    teachers: tuple[str, ...] = ()  # folders of trained models whose guesses it learns from too (distillation)
    teacher_share: float = 0.8  # share of the loss that is the teachers'
    ema_decay: float | None = None  # memory of the average of the weights that is evaluated and kept; None for none
    ema_every: int = 1  # steps between two updates of that average

    evaluate_every: int = 250  # steps between two looks at the validation set
    evaluate_tokens: int | None = None  # validation tokens to look at; None for all
    patience: int | None = None  # stop after this many evaluations without gain; None to go on
    checkpoint_every: int | None = None  # steps between two checkpoints; None: at each evaluation
    keep_checkpoints: int = 2  # latest checkpoints that are kept, besides the best

    precision: Precision = "auto"  # type of the arithmetic; auto looks at the machine
    compile: Compile = "auto"  # compile the model; auto does where it pays
    spike: float | None = 3.0  # stop when the loss exceeds its recent average by this many nats; None to go on

    def __post_init__(self) -> None:
        if isinstance(self.teachers, list):  # as JSON and TOML have it
            object.__setattr__(self, "teachers", tuple(self.teachers))
        check_types(self)
        for names, is_right, wanted in _BOUNDS:
            for name in names.split():
                value = getattr(self, name)
                if value is not None and not is_right(value):
                    raise ConfigError("{name}={value} must be {wanted}", name=name, value=value, wanted=wanted)

    def change(self, **changes: Any) -> "TrainConfig":
        """A config with some settings changed; a setting that does not exist is answered with the nearest."""
        check_names(changes, [each.name for each in fields(self)])
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return asdict(self)


def check_names(given: Iterable[str], known: Collection[str]) -> None:
    """Refuse a setting that does not exist."""
    for name in given:
        if name not in known:
            raise ConfigError("unknown setting {name!r}{nearest}", name=name, nearest=nearest(name, known))


_ONLY_FOR: tuple[tuple[str, Any, Message], ...] = (
    ("teachers", GPTConfig, Message("gpt models, which predict the next token")),
    ("backwards", GPTConfig, Message("gpt models, which predict the next token")),
    ("augment", ViTConfig, Message("images")),
    ("class_weights", ViTConfig | ClassifierConfig, Message("classifiers of texts or images")),
    ("lora", TextConfig, Message("text models")),
)


def check_settings(model: ModelConfig, config: TrainConfig) -> None:
    """Refuse settings that only another family learns by."""
    for name, kinds, learners in _ONLY_FOR:
        if getattr(config, name) != TrainConfig.__dataclass_fields__[name].default and not isinstance(model, kinds):
            raise ConfigError("{name} is only for {learners}; remove it", name=name, learners=learners)


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
    """The settings of a recipe, with some changed; a warm-up that was not chosen never takes most of the steps.

    >>> [recipe("course", steps=steps).warmup_steps for steps in (20_000, 500)]
    [1000, 50]
    """
    if name not in RECIPES:
        raise ConfigError("unknown recipe {name!r}{nearest}", name=name, nearest=nearest(name, RECIPES))
    config = TrainConfig().change(**{**RECIPES[name], **changes})
    if "warmup_steps" in changes or config.warmup_steps <= config.steps // 2:
        return config
    return config.change(warmup_steps=config.steps // 10)
