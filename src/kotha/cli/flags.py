"""Flags that several commands share, the short way to declare one, and settings that are given as words or as TOML."""

import inspect
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from kotha.cli.naming import place
from kotha.errors import ConfigError, UsageError
from kotha.i18n.message import Option
from kotha.storage import bundled
from kotha.storage.destinations import PAGE_ENDINGS, check_file_place

if TYPE_CHECKING:
    from kotha.api.model import Engine, SamplingSettings

BOX = bundled.FOLDER
_DRAWING = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
_MOST_CONFIG_BYTES = 1 << 20


def flag(help: str, **more: Any) -> Parameter:
    """A flag and what help says of it; a switch has no opposite, unless one is named."""
    return Parameter(help=help, **{"negative": "", **more})


def written(help: str, *endings: str, **more: Any) -> Parameter:
    """A flag that names a file to write, looked at before the work for it; one of other ``endings`` is not replaced."""
    return flag(help, converter=lambda _, words: check_file_place(Path(words[0].value), *endings), **more)


def page(help: str, **more: Any) -> Parameter:
    """A flag that names a page to write."""
    return written(help, *PAGE_ENDINGS, **more)


Json = Annotated[bool, flag("JSON on stdout.", name="--json")]
# Whoever sets KOTHA_LANGUAGE once need not say it with each command; set to nothing, it says nothing.
InLanguage = Annotated[
    Literal["en", "bn"],
    flag("English or Bangla.", env_var="KOTHA_LANGUAGE", env_var_split=lambda _, value, delimiter=None: value.split()),
]
MODEL = "A run folder (its best model), or a model folder; left out, or box: the model in the box."
_BY_NAME: dict[str, Any] = {"converter": lambda _, words: place(words[0].value), "show_default": False}
Run = Annotated[Path, flag(MODEL, **_BY_NAME)]
# For a use that the model in the box has not learned; it is still known by its name, to be told so.
RunOfOnesOwn = Annotated[Path, flag("A run folder (its best model), or a model folder.", **_BY_NAME)]
RunName = Annotated[str | None, flag(MODEL, name="RUN", show_default=False)]  # where what it names is still open
Paths = Annotated[tuple[str, ...], flag("Files, folders, globs, addresses (https://, s3://, …), - or hf:owner/name.")]
TextItself = Annotated[str | None, flag("The text itself, instead of a PATH.")]
Field = Annotated[str, flag("Field or column that holds the text.")]
# ``corpus.problems.Errors``, without the readers that come with it: not every command reads a corpus.
OnErrors = Annotated[Literal["stop", "skip", "replace"], flag("What happens to a document that cannot be read.")]
WorkPlace = Annotated[str | None, flag("Where the workers are: ray (a cluster of its own here) or ray://HOST:PORT.")]
TokenizerName = Annotated[str, flag("A tokenizer: file, folder, or hub name.")]
Pair = Annotated[tuple[str, str] | None, flag("For a translating model: the fields of source and target.")]
More = Annotated[
    tuple[str, ...],
    flag("More settings, or sizes: NAME=VALUE, one or several.", name="--set", consume_multiple=True),
]


group = Parameter(name="*")  # a dataclass whose fields are flags


@group
@dataclass(frozen=True, kw_only=True)
class MoreSettings:
    """The settings of a training that have no flag of their own."""

    config: Annotated[Path | None, flag("A TOML file with more settings.")] = None
    set_: More = ()

    def given(self, trains: Callable[..., Any], **flags: Any) -> dict[str, Any]:
        """All of them, and the ``flags`` that were given; an argument of ``trains`` itself is refused."""
        found = {**from_toml(self.config), **from_words(self.set_)}
        own = inspect.signature(trains).parameters.keys() - flags.keys()
        for name in found:
            if name in own:
                raise UsageError("{name} is no setting; give it as {option}", name=name, option=Option(name))
        return {**found, **{name: value for name, value in flags.items() if value is not None}}


@group
@dataclass(frozen=True, kw_only=True)
class Writing:
    """How a model writes: one flag for each field."""

    tokens: Annotated[int, flag("Tokens to write at most.")] = 150
    temperature: Annotated[float, flag("0 always takes the best token, 1 draws as the model says.")] = 0.8
    top_k: Annotated[int | None, flag("Draw among this many of the best tokens.", negative="--no-top-k")] = 40
    top_p: Annotated[float | None, flag("Draw among the fewest best tokens with this probability together.")] = None
    min_p: Annotated[float | None, flag("Draw among tokens at least this share as likely as the best.")] = None
    repetition_penalty: Annotated[
        float | None, flag("Above 1: what was said becomes less likely.", negative="--no-repetition-penalty")
    ] = 1.1
    seed: Annotated[int, flag("The same seed gives the same text.")] = 0
    stop: Annotated[tuple[str, ...], flag("End before this text; may be given again.")] = ()
    weights: Annotated[
        Literal["as-they-are", "auto", "float32", "bfloat16", "int8"],
        flag("Narrower ones are read faster and say almost the same; auto measures."),
    ] = "as-they-are"

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
            raise ConfigError(
                "{path} has more than {most_config_bytes:,} bytes, far more than any settings",
                path=path,
                most_config_bytes=_MOST_CONFIG_BYTES,
            )
        return tomllib.loads(found.decode())
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
            raise UsageError(
                "--set {word}: write NAME=VALUE, such as learning_rate=1e-3, and other words before --set", word=word
            )
        try:
            found[name] = tomllib.loads(f"value = {value}")["value"]
        except (ValueError, RecursionError):
            found[name] = None if value == "none" else value
    return found
