"""A model that comes with the package, so that everything works before anything is trained.

This room is a model folder (see ``bundle.py``) with its card, ``README.md``. Where a model can be named, the word
``box`` means it, and no name at all does too; a folder of one's own that is called so is ``./box``. Nothing of it is
read before it is asked for.
"""

import os
from pathlib import Path

NAME = "box"
FOLDER = Path(__file__).parent
CARD_FILE = "README.md"


def place(named: str | os.PathLike[str] | None) -> Path:
    """Where the model is that a word or a path names.

    >>> place("run"), place("./box")
    (PosixPath('run'), PosixPath('box'))
    >>> place("box") == place(None) == FOLDER
    True
    """
    return FOLDER if named is None or named == NAME else Path(named)


def title(folder: str | os.PathLike[str]) -> str:
    """What a model's folder is called: its path, or the word.

    >>> title("run"), title(FOLDER)
    ('run', 'box')
    """
    return NAME if Path(folder) == FOLDER else os.fspath(folder)
