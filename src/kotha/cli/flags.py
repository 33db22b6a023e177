"""Flags that several commands share, and the short way to declare one."""

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter


def flag(help: str, **more: Any) -> Parameter:
    """A flag and what help says of it; a switch has no opposite, unless one is named."""
    return Parameter(help=help, **{"negative": "", **more})


Json = Annotated[bool, flag("JSON on stdout.", name="--json")]
Run = Annotated[Path, flag("A run folder (its best model), or a model folder.")]
Paths = Annotated[tuple[str, ...], flag("Files, folders, globs, - or hf:owner/name.")]
Field = Annotated[str, flag("Field or column that holds the text.")]
# ``corpus.problems.Errors``, without the readers that come with it: not every command reads a corpus.
OnErrors = Annotated[Literal["stop", "skip", "replace"], flag("What happens to a document that cannot be read.")]
TokenizerName = Annotated[str, flag("A tokenizer: file, folder, or hub name.")]
