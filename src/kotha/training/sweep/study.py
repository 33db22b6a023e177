"""The study behind a sweep: a database that many processes and machines share (Optuna, SQLite by default).

Whoever works on a trial gives a sign of life every few seconds (Optuna's heartbeat). A trial whose process has given
none for a minute is queued again with the same values, and goes on from its checkpoint where there is one.

What the sweep is (data, settings, what is searched) is written into the study by whoever makes it, and everybody else
reads it there.
"""

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kotha.errors import KothaError, UsageError, library
from kotha.storage.atomic import filled_folder
from kotha.storage.locks import Lock

DATABASE = "study.db"
ABOUT = "kotha_sweep"  # the attribute of a study that says what it is
FOLDER, DEFAULT = "folder", "default"  # attributes of a trial: its run folder, and whether it is the default recipe
_HEARTBEAT_SECONDS, _GRACE_SECONDS = 15, 60
_WAIT_FOR_DATABASE = 60  # seconds in which another process may be writing a SQLite file

NEEDED = "a sweep needs Optuna; install it with: pip install 'kotha[sweep]'"


def optuna() -> Any:
    """Optuna, quiet; where it is missing, how to get it."""
    found = library("optuna", NEEDED)
    found.logging.set_verbosity(found.logging.ERROR)
    return found


def database_in(folder: Path) -> str:
    """The address of the database that a sweep folder holds."""
    url = f"sqlite:///{(folder / DATABASE).absolute()}"
    if any(mark in url for mark in "?#"):
        raise UsageError(
            "{folder} has a ? or # in its path, which a database URL cannot contain; choose another folder",
            folder=folder,
        )
    return url


def without_password(url: str) -> str:
    """An address of a database that may be shown.

    >>> without_password("postgresql://me:secret@host/db"), without_password("nonsense")
    ('postgresql://me:***@host/db', 'nonsense')
    """
    return re.sub(r":[^/@][^@]*@", ":***@", url)


@contextmanager
def database_told(url: str) -> Iterator[None]:
    """What goes wrong with a database, in one line and without its password."""
    errors, ours = library("sqlalchemy.exc", NEEDED), optuna().exceptions
    try:
        with warnings.catch_warnings():  # heartbeats are called experimental by Optuna; they are what we need
            warnings.simplefilter("ignore", ours.ExperimentalWarning)
            yield
    except (errors.SQLAlchemyError, ours.StorageInternalError) as error:
        raise _unusable(url, getattr(error, "orig", None) or error.__cause__ or error) from error


def _unusable(url: str, why: object) -> KothaError:
    return KothaError(
        "the database {url} cannot be used: {why}; check that it exists and is writable",
        url=without_password(url),
        why=str(why).strip().partition("\n")[0],
    )


def open_study(url: str, name: str, folder: Path, about: Callable[[], dict[str, Any]]) -> Any:
    """The study of that name, made if there is none, by one process of the folder; what cannot begin leaves no folder.

    ``about`` says what the sweep is, for everybody else to read.
    """
    found = optuna()
    with filled_folder(folder):
        alone = Lock(folder, wait=True)
        try:
            storage = _storage(url)
            is_new = name not in found.get_all_study_names(storage)
            told = about() if is_new else None  # before the study exists, so that nobody finds it without
            study = found.create_study(study_name=name, storage=storage, load_if_exists=True)
            if is_new and ABOUT not in study.user_attrs:  # another machine may have been faster
                study.set_user_attr(ABOUT, told)
        finally:
            alone.let_go()
    if ABOUT not in study.user_attrs:
        raise UsageError(
            "the study {name!r} in {url} was not made by kotha sweep; choose another name",
            name=name,
            url=without_password(url),
        )
    return study


def _storage(url: str) -> Any:
    options: dict[str, Any] = {"pool_pre_ping": True}
    if url.startswith("sqlite"):  # a file is opened for each thing that is asked of it, and never left open
        options = {"connect_args": {"timeout": _WAIT_FOR_DATABASE}, "poolclass": library("sqlalchemy", NEEDED).NullPool}
    try:
        return optuna().storages.RDBStorage(
            url,
            engine_kwargs=options,
            heartbeat_interval=_HEARTBEAT_SECONDS,
            grace_period=_GRACE_SECONDS,
            heartbeat_stale_trial_callback=do_again,
        )
    except (ImportError, RuntimeError, ValueError) as error:  # no driver, or tables of another version of Optuna
        raise _unusable(url, error) from error


def do_again(study: Any, trial: Any) -> None:
    """Queue a trial's values once more, for its own folder."""
    optuna().storages.RetryHeartbeatStaleTrialCallback()(study, trial)
