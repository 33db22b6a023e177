"""Settings from the command line: NAME=VALUE words and TOML files."""

import tomllib
from pathlib import Path
from typing import Annotated, Any

from kotha.cli.flags import flag
from kotha.errors import ConfigError, UsageError

More = Annotated[
    tuple[str, ...],
    flag("More settings, or sizes: NAME=VALUE, one or several.", name="--set", consume_multiple=True),
]


def from_toml(path: Path | None) -> dict[str, Any]:
    """The settings of a TOML file; none without a file."""
    if path is None:
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"--config {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error


def from_words(words: tuple[str, ...]) -> dict[str, Any]:
    """The settings of ``--set NAME=VALUE`` words; a value is read as TOML would, or else is a plain word."""
    found: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageError(
                f"--set {word}: write NAME=VALUE, such as learning_rate=1e-3, and other words before --set"
            )
        try:
            found[name] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[name] = None if value == "none" else value
    return found
