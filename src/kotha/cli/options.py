"""Options shared by several commands, and settings from NAME=VALUE arguments or TOML files.

The help text for an option is in its command's docstring, or below the field in an option group. Only types shared by
several commands define their own help.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, dataclass_transform

from cyclopts import Parameter

from kotha.cli.model_argument import model_path
from kotha.errors import ConfigError, UsageError
from kotha.i18n.message import Option
from kotha.storage import bundled
from kotha.storage.output_paths import PAGE_ENDINGS, check_file_place

if TYPE_CHECKING:
    from kotha.api.engine import SamplingSettings

BOX = bundled.FOLDER
_MAX_CONFIG_BYTES = 1 << 20
_SAMPLING_FIELDS = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
Group = TypeVar("Group")


@dataclass_transform(kw_only_default=True, frozen_default=True)
def group(fields: type[Group]) -> type[Group]:
    """Make a dataclass whose fields are command options."""
    return Parameter(name="*")(dataclass(frozen=True, kw_only=True)(fields))


def written(*endings: str, **more: Any) -> Parameter:
    """Return a parameter for an output file, whose path is checked before the command runs.

    With ``endings``, an existing file may be replaced only if its name ends in one of them.
    """
    return Parameter(converter=lambda _, words: check_file_place(Path(words[0].value), *endings), **more)


# The fields of an API dataclass as command options; with Many, a list option accepts several words.
Flat = Parameter(name="*")
FlatMany = Parameter(name="*", consume_multiple=True)
# For commands that print as they run; ``main`` prints the results of the others as JSON.
AsJson = Annotated[bool, Parameter(name="--json", help="Print JSON on stdout.")]
Page = Annotated[Path | None, written(*PAGE_ENDINGS)]
Several = Annotated[tuple[str, ...], Parameter(consume_multiple=True)]
MODEL = "Run folder (its best model is used) or model folder (default: box, the bundled model)."
_BY_NAME: dict[str, Any] = {"converter": lambda _, words: model_path(words[0].value), "show_default": False}
Run = Annotated[Path, Parameter(help=MODEL, **_BY_NAME)]
# For commands whose second argument could be mistaken for the first if the first were omitted.
RequiredRun = Annotated[
    Path, Parameter(help="Run folder (its best model is used), model folder, or box, the bundled model.", **_BY_NAME)
]
# For commands that do not support the bundled model; specifying it raises a clear error.
RunOfOnesOwn = Annotated[Path, Parameter(help="Run folder (its best model is used) or model folder.", **_BY_NAME)]
RunName = Annotated[str | None, Parameter(help=MODEL, name="RUN")]  # may also be a prompt
Paths = Annotated[
    tuple[str, ...], Parameter(help="Files, folders, globs, URLs (https://, s3://, …), - for stdin, or hf:owner/name.")
]
TextItself = Annotated[str | None, Parameter(help="Text to use instead of a PATH.")]
Field = Annotated[str, Parameter(help="Field or column that holds the text.")]
# The same as ``corpus.problems.Errors``, without importing the corpus readers.
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
    Parameter(
        help="Other training settings or model sizes, as one or more NAME=VALUE pairs.",
        name="--set",
        consume_multiple=True,
    ),
]


@group
class MoreSettings:
    """Training settings without a dedicated option."""

    config: Path | None = None
    """TOML file with settings."""
    set_: More = ()

    def given(self, train: Callable[..., Any], **flags: Any) -> dict[str, Any]:
        """Return all settings and the given ``flags``; raise an error if a setting is an argument of ``train``."""
        found = {**from_toml(self.config), **from_words(self.set_)}
        own = inspect.signature(train).parameters.keys() - flags.keys()
        for name in found:
            if name in own:
                raise UsageError("{name} is not a setting; use {option}", name=name, option=Option(name))
        return {**found, **{name: value for name, value in flags.items() if value is not None}}


@group
class Writing:
    """Options for generating text."""

    tokens: int = 150
    """Maximum number of tokens to generate."""
    temperature: float = 0.8
    """Sampling temperature: 0 picks the most likely token, 1 samples from the model's distribution."""
    top_k: Annotated[int | None, Parameter(negative="--no-top-k")] = 40
    """Number of most likely tokens to sample from."""
    top_p: float | None = None
    """Sample from the smallest set of most likely tokens with this total probability."""
    min_p: float | None = None
    """Sample only from tokens that are at least this fraction as likely as the most likely one."""
    repetition_penalty: Annotated[float | None, Parameter(negative="--no-repetition-penalty")] = 1.1
    """Repetition penalty; values above 1 make tokens that already occurred less likely."""
    seed: int = 0
    """Random seed; the same seed gives the same text."""
    stop: tuple[str, ...] = ()
    """Stop generating before this text; may be repeated."""
    weights: Literal["stored", "float32", "bfloat16", "int8"] = "stored"
    """Data type of the weights; narrower types are faster, with almost the same output."""

    def settings(self, index: int = 0) -> "SamplingSettings":
        """Return the sampling settings for a text; each index has its own seed."""
        from kotha.api.engine import SamplingSettings

        return SamplingSettings(seed=self.seed + index, **{name: getattr(self, name) for name in _SAMPLING_FIELDS})


def from_toml(path: Path | None) -> dict[str, Any]:
    """Read settings from a TOML file; without a file, return an empty dict."""
    if path is None:
        return {}
    import tomllib

    try:
        with path.open("rb") as file:  # read a limited number of bytes, because a pipe has no size
            found = file.read(_MAX_CONFIG_BYTES + 1)
        if len(found) > _MAX_CONFIG_BYTES:
            template = "{path} is larger than {most_config_bytes:,} bytes, too large for a settings file"
            raise ConfigError(template, path=path, most_config_bytes=_MAX_CONFIG_BYTES)
        return tomllib.loads(found.decode("utf-8"))
    except OSError as error:
        template = "--config {path}: {strerror}; specify a TOML file"
        raise UsageError(template, path=path, strerror=error.strerror) from error
    except (ValueError, RecursionError) as error:  # invalid TOML or UTF-8, or a number with thousands of digits
        raise ConfigError("{path} is not valid TOML: {error}", path=path, error=error) from error


def from_words(words: tuple[str, ...]) -> dict[str, Any]:
    """Parse settings from ``--set NAME=VALUE``; a value that is not valid TOML is a plain string."""
    if not words:
        return {}
    import tomllib

    found: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            template = "--set {word}: expected NAME=VALUE, such as learning_rate=1e-3; put other arguments before --set"
            raise UsageError(template, word=word)
        try:
            found[name] = tomllib.loads(f"value = {value}")["value"]
        except (ValueError, RecursionError):
            found[name] = None if value == "none" else value
    return found
