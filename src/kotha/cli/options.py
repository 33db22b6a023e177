"""Options that several commands share, and settings that are given as words or as TOML.

What help says of an option stands in the docstring of its command, or below the field of its group; only types that
several commands share bring their help along.
"""

import inspect
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, dataclass_transform

from cyclopts import Parameter

from kotha.cli.model_argument import place
from kotha.errors import ConfigError, UsageError
from kotha.i18n.message import Option
from kotha.storage import bundled
from kotha.storage.output_paths import PAGE_ENDINGS, check_file_place

if TYPE_CHECKING:
    from kotha.api.model import Engine, SamplingSettings

BOX = bundled.FOLDER
_MOST_CONFIG_BYTES = 1 << 20
_DRAWING = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
Group = TypeVar("Group")


@dataclass_transform(kw_only_default=True, frozen_default=True)
def group(fields: type[Group]) -> type[Group]:
    """A dataclass whose fields are options of a command."""
    return Parameter(name="*")(dataclass(frozen=True, kw_only=True)(fields))


def written(*endings: str, **more: Any) -> Parameter:
    """A file to write, checked before the work for it; one of other ``endings`` is not replaced."""
    return Parameter(converter=lambda _, words: check_file_place(Path(words[0].value), *endings), **more)


# The fields of a dataclass of the API, as options of a command; with Many a list takes several words.
Flat = Parameter(name="*")
FlatMany = Parameter(name="*", consume_multiple=True)
# For a command that writes as it goes on; what another returns is printed as JSON by ``main``.
AsJson = Annotated[bool, Parameter(name="--json", help="JSON on stdout.")]
Page = Annotated[Path | None, written(*PAGE_ENDINGS)]
Several = Annotated[tuple[str, ...], Parameter(consume_multiple=True)]
MODEL = "Run folder (its best model) or model folder (default: box, the bundled model)."
_BY_NAME: dict[str, Any] = {"converter": lambda _, words: place(words[0].value), "show_default": False}
Run = Annotated[Path, Parameter(help=MODEL, **_BY_NAME)]
# For a use that the model in the box has not learned; it is still known by its name, to be told so.
RunOfOnesOwn = Annotated[Path, Parameter(help="Run folder (its best model) or model folder.", **_BY_NAME)]
RunName = Annotated[str | None, Parameter(help=MODEL, name="RUN")]  # where what it names is still open
Paths = Annotated[
    tuple[str, ...], Parameter(help="Files, folders, globs, URLs (https://, s3://, …), - for stdin, or hf:owner/name.")
]
TextItself = Annotated[str | None, Parameter(help="Text to use instead of a PATH.")]
Field = Annotated[str, Parameter(help="Field or column that holds the text.")]
# ``corpus.problems.Errors``, without the readers that come with it: not every command reads a corpus.
OnErrors = Annotated[Literal["stop", "skip"], Parameter(help="What to do with an unreadable document.")]
WorkPlace = Annotated[
    str | None, Parameter(help="Where the workers run: ray (a new local cluster) or ray://HOST:PORT.")
]
TokenizerName = Annotated[str, Parameter(help="Tokenizer file, folder or hub name.")]
Pair = Annotated[
    tuple[str, str] | None,
    Parameter(help="Names of the two fields of a table: source and target, text and label, or question and answer."),
]
Device = Annotated[str, Parameter(help="Device: cpu, cuda or auto.")]
More = Annotated[
    tuple[str, ...],
    Parameter(help="Other settings or model sizes, as one or more NAME=VALUE.", name="--set", consume_multiple=True),
]


@group
class MoreSettings:
    """The settings of a training that have no flag of their own."""

    config: Path | None = None
    """TOML file with settings."""
    set_: More = ()

    def given(self, trains: Callable[..., Any], **flags: Any) -> dict[str, Any]:
        """All of them, and the ``flags`` that were given; an argument of ``trains`` itself is refused."""
        found = {**from_toml(self.config), **from_words(self.set_)}
        own = inspect.signature(trains).parameters.keys() - flags.keys()
        for name in found:
            if name in own:
                raise UsageError("{name} is not a setting; use {option}", name=name, option=Option(name))
        return {**found, **{name: value for name, value in flags.items() if value is not None}}


@group
class Writing:
    """How a model writes."""

    tokens: int = 150
    """Maximum number of tokens to generate."""
    temperature: float = 0.8
    """Sampling temperature: 0 always takes the likeliest token, 1 samples from the model's distribution."""
    top_k: Annotated[int | None, Parameter(negative="--no-top-k")] = 40
    """Number of likeliest tokens to sample from."""
    top_p: float | None = None
    """Sample from the smallest set of likeliest tokens with this total probability."""
    min_p: float | None = None
    """Sample from tokens at least this fraction as likely as the likeliest one."""
    repetition_penalty: Annotated[float | None, Parameter(negative="--no-repetition-penalty")] = 1.1
    """Repetition penalty; above 1, earlier tokens become less likely."""
    seed: int = 0
    """Random seed; the same seed gives the same text."""
    stop: tuple[str, ...] = ()
    """Text to stop before; may be repeated."""
    weights: Literal["as-they-are", "float32", "bfloat16", "int8"] = "as-they-are"
    """Type of the weights; narrower types are faster, with almost the same output."""

    def settings(self, place: int = 0) -> "SamplingSettings":
        """How the text at a place is drawn; each place has a seed of its own."""
        from kotha.api.model import SamplingSettings

        return SamplingSettings(seed=self.seed + place, **{name: getattr(self, name) for name in _DRAWING})

    def open_engine(self, run: Path, max_batch: int = 1) -> "Engine":
        """The engine of a run or model folder, on a GPU where there is one."""
        import kotha

        return kotha.load(run).engine(max_batch, self.weights)


def from_toml(path: Path | None) -> dict[str, Any]:
    """The settings of a TOML file; none without a file."""
    if path is None:
        return {}
    try:
        with path.open("rb") as file:  # not its size: a pipe is welcome, and has none
            found = file.read(_MOST_CONFIG_BYTES + 1)
        if len(found) > _MOST_CONFIG_BYTES:
            told = "{path} is larger than {most_config_bytes:,} bytes, too large for a settings file"
            raise ConfigError(told, path=path, most_config_bytes=_MOST_CONFIG_BYTES)
        return tomllib.loads(found.decode("utf-8"))
    except OSError as error:
        raise UsageError("--config {path}: {strerror}", path=path, strerror=error.strerror) from error
    except (ValueError, RecursionError) as error:  # of TOML, of UTF-8, or of a number with thousands of digits
        raise ConfigError("{path} is not TOML: {error}", path=path, error=error) from error


def from_words(words: tuple[str, ...]) -> dict[str, Any]:
    """The settings of ``--set NAME=VALUE`` words; a value is read as TOML would, or else is a plain word."""
    found: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            told = "--set {word}: expected NAME=VALUE, such as learning_rate=1e-3; put other arguments before --set"
            raise UsageError(told, word=word)
        try:
            found[name] = tomllib.loads(f"value = {value}")["value"]
        except (ValueError, RecursionError):
            found[name] = None if value == "none" else value
    return found
