"""The study of a sweep: a database shared by processes and machines (Optuna, SQLite by default).

Each process sends a heartbeat for its trial every few seconds (Optuna). After a minute without a heartbeat, the trial
is queued again with the same values and resumes from its checkpoint, if any.

The process that creates the study stores the description of the sweep in it (data, settings and search ranges), and all
other processes read this description.
"""

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kotha.errors import InstallCommand, KothaError, UsageError, library, require
from kotha.i18n.message import Message
from kotha.storage.atomic import filled_folder
from kotha.storage.locks import Lock

DATABASE = "study.db"
ABOUT = "kotha_sweep"  # study attribute: the description of the sweep
FOLDER, DEFAULT = "folder", "default"  # trial attributes: its run folder, and whether it is the default recipe
_HEARTBEAT_SECONDS, _GRACE_SECONDS = 15, 60
_WAIT_FOR_DATABASE = 60  # seconds to wait while another process writes a SQLite file

NEEDED = Message("a sweep needs Optuna; install it with: {command}", command=InstallCommand("sweep"))


def require_optuna() -> None:
    """Raise KothaError if Optuna is missing."""
    require(NEEDED, "optuna")


def optuna() -> Any:
    """Import Optuna and reduce its logging; if it is missing, raise an error with installation instructions."""
    found = library("optuna", NEEDED)
    found.logging.set_verbosity(found.logging.ERROR)
    return found


def database_in(folder: Path) -> str:
    """Return the URL of the database in a sweep folder."""
    url = f"sqlite:///{(folder / DATABASE).absolute()}"
    if any(mark in url for mark in "?#"):
        raise UsageError(
            "{folder} has a ? or # in its path, which a database URL cannot contain; choose another folder",
            folder=folder,
        )
    return url


def without_password(url: str) -> str:
    """Return a database URL with its password hidden.

    >>> without_password("postgresql://me:secret@host/db"), without_password("nonsense")
    ('postgresql://me:***@host/db', 'nonsense')
    """
    return re.sub(r":[^/@][^@]*@", ":***@", url)


@contextmanager
def database_errors(url: str) -> Iterator[None]:
    """Convert database errors to one-line errors without the password."""
    errors, exceptions = library("sqlalchemy.exc", NEEDED), optuna().exceptions
    try:
        with warnings.catch_warnings():  # Optuna's heartbeats are experimental
            warnings.simplefilter("ignore", exceptions.ExperimentalWarning)
            yield
    except (errors.SQLAlchemyError, exceptions.StorageInternalError) as error:
        raise _unusable(url, getattr(error, "orig", None) or error.__cause__ or error) from error


def _unusable(url: str, why: object) -> KothaError:
    return KothaError(
        "the database {url} cannot be used: {why}; check that it exists and is writable",
        url=without_password(url),
        why=str(why).strip().partition("\n")[0],
    )


def open_study(url: str, name: str, folder: Path, about: Callable[[], dict[str, Any]]) -> Any:
    """Open the study with this name, or create it; on an error no folder is left behind.

    ``about`` returns the description of the sweep, which is stored for other processes.
    """
    found = optuna()
    with filled_folder(folder):
        lock = Lock(folder, wait=True)
        try:
            storage = _storage(url)
            is_new = name not in found.get_all_study_names(storage)
            description = about() if is_new else None  # the folder is created first, so that no study exists without it
            study = found.create_study(study_name=name, storage=storage, load_if_exists=True)
            if is_new and ABOUT not in study.user_attrs:  # unless another machine created it first
                study.set_user_attr(ABOUT, description)
        finally:
            lock.release()
    if ABOUT not in study.user_attrs:
        raise UsageError(
            "the study {name!r} in {url} was not made by kotha sweep; choose another name",
            name=name,
            url=without_password(url),
        )
    return study


def _storage(url: str) -> Any:
    options: dict[str, Any] = {"pool_pre_ping": True}
    if url.startswith("sqlite"):  # open the file for each query and close it afterwards
        options = {"connect_args": {"timeout": _WAIT_FOR_DATABASE}, "poolclass": library("sqlalchemy", NEEDED).NullPool}
    try:
        return optuna().storages.RDBStorage(
            url,
            engine_kwargs=options,
            heartbeat_interval=_HEARTBEAT_SECONDS,
            grace_period=_GRACE_SECONDS,
            heartbeat_stale_trial_callback=requeue,
        )
    except (ImportError, RuntimeError, ValueError) as error:  # a missing driver, or tables from another Optuna version
        raise _unusable(url, error) from error


def requeue(study: Any, trial: Any) -> None:
    """Queue the values of a trial again, to be run in the same folder."""
    optuna().storages.RetryHeartbeatStaleTrialCallback()(study, trial)
