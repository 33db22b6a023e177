"""The bundled model, so that commands work before anything is trained.

This package is a model folder (see ``model_folder.py``) with its model card, ``README.md``. Wherever a model can be
named, ``box`` means the bundled model, and it is the default; a folder of that name is ``./box``. The model's files are
read only when they are needed.
"""

import os
from pathlib import Path

NAME = "box"
FOLDER = Path(__file__).parent
CARD_FILE = "README.md"


def model_path(name: str | os.PathLike[str] | None) -> Path:
    """Return the folder of a model from a path or the name ``box``.

    >>> model_path("run"), model_path("./box")
    (PosixPath('run'), PosixPath('box'))
    >>> model_path("box") == model_path(None) == FOLDER
    True
    """
    return FOLDER if name is None or name == NAME else Path(name)


def title(folder: str | os.PathLike[str]) -> str:
    """Return the display name of a model folder: its path, or ``box``.

    >>> title("run"), title(FOLDER)
    ('run', 'box')
    """
    return NAME if Path(folder) == FOLDER else os.fspath(folder)
