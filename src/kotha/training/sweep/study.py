"""The study behind a sweep: a database that many processes and machines share (Optuna, SQLite by default).

Who works on a study holds a file of its own in the sweep folder, under a lock that the kernel lets go when the process
ends, however it ends; each trial names the file of who does it. So a trial that a killed process left running is known
at once on the same folder. Between machines that share only the database, a heartbeat every few seconds says the same
after a minute. Either way the trial is done again with the same values, and goes on from its checkpoint where there is
one. A trial that was left so several times is given up: it may be what kills its process.

What the sweep is (data, settings, what is searched) is written into the study by whoever makes it, and everybody else
reads it there.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from kotha.errors import KothaError, UsageError, library
from kotha.i18n.message import Message, Text
from kotha.storage.atomic import filled_folder
from kotha.storage.locks import InUseError, Lock
from kotha.storage.status import is_file

DATABASE, WORKERS = "study.db", "workers"
ABOUT = "kotha_sweep"  # the attribute of a study that says what it is
# Attributes of a trial: who does it, in which folder, whether it is the default recipe, how often it was done again.
WORKER, FOLDER, DEFAULT, AGAIN = "worker", "folder", "default", "again"
_MOST_AGAIN = 3
_HEARTBEAT_SECONDS, _GRACE_SECONDS = 15, 60
_WAIT_FOR_DATABASE = 60  # seconds in which another process may be writing a SQLite file
_WAIT_FOR_ABOUT = 10.0

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
            "{folder} has a ? or # in its path, which no address of a database can hold; choose another", folder=folder
        )
    return url


def without_password(url: str) -> Text:
    """An address of a database that may be shown.

    >>> without_password("postgresql://me:secret@host/db"), without_password("nonsense")
    ('postgresql://me:***@host/db', 'nonsense')
    """
    engine = library("sqlalchemy.engine", NEEDED)
    try:
        return str(engine.make_url(url).render_as_string(hide_password=True))
    except Exception:  # whatever it is, it is no address
        return url if "@" not in url else Message("the database")


@contextmanager
def database_told(url: str) -> Iterator[None]:
    """What goes wrong with a database, in one line and without its password."""
    errors = library("sqlalchemy.exc", NEEDED)
    internal = optuna().exceptions.StorageInternalError
    try:
        with warnings.catch_warnings():  # heartbeats are called experimental by Optuna; they are what we need
            warnings.simplefilter("ignore", optuna().exceptions.ExperimentalWarning)
            yield
    except (errors.SQLAlchemyError, internal) as error:
        reason = str(getattr(error, "orig", None) or error.__cause__ or error).strip().splitlines()
        raise KothaError(
            "the database {url} cannot be used: {why}; see that it is there, and that you may write to it",
            url=without_password(url),
            why=reason[0] if reason else Message("it does not answer"),
        ) from error
    except ImportError as error:
        if "DB access module" not in str(error):
            raise
        raise KothaError(
            "the database {url} needs a driver that is not installed ({driver}); install it, or leave the "
            "address out for a file in the sweep folder",
            url=without_password(url),
            driver=error.__cause__,
        ) from error


def open_study(url: str, name: str, folder: Path, about: Callable[[], dict[str, Any]]) -> Any:
    """The study of that name, made if there is none; exactly one process makes it, and says what it is.

    What cannot be begun leaves no folder behind.
    """
    found = optuna()
    with filled_folder(folder), _alone(folder):
        storage = _storage(url)
        if _exists(storage, name):
            study = found.load_study(study_name=name, storage=storage)
        else:
            told = about()  # before the study is there, so that nobody waits for it long
            with suppress(found.exceptions.DuplicatedStudyError):  # made by another machine meanwhile
                study = found.create_study(study_name=name, storage=storage)
                study.set_user_attr(ABOUT, told)
                return study
            study = found.load_study(study_name=name, storage=storage)
    until = time.monotonic() + _WAIT_FOR_ABOUT
    while ABOUT not in study.user_attrs:
        if time.monotonic() > until:  # who made it was killed in between
            if study.get_trials(deepcopy=False):
                raise UsageError(
                    "the study {name!r} of {url} is not a sweep of ours; name another",
                    name=name,
                    url=without_password(url),
                )
            study.set_user_attr(ABOUT, about())
        time.sleep(0.1)
    return study


def _storage(url: str) -> Any:
    storages = optuna().storages
    options: dict[str, Any] = {"pool_pre_ping": True}
    if url in ("sqlite://", "sqlite:///:memory:"):
        raise UsageError(
            "{url} is gone with its process; leave the address out for a file in the sweep folder", url=url
        )
    if url.startswith("sqlite"):  # a file is opened for each thing that is asked of it, and never left open
        options = {"connect_args": {"timeout": _WAIT_FOR_DATABASE}, "poolclass": library("sqlalchemy", NEEDED).NullPool}
    try:
        return storages.RDBStorage(
            url,
            engine_kwargs=options,
            heartbeat_interval=_HEARTBEAT_SECONDS,
            grace_period=_GRACE_SECONDS,
            heartbeat_stale_trial_callback=do_again,
        )
    except (RuntimeError, ValueError) as error:  # tables of another version of Optuna
        raise KothaError(
            "the database {url} cannot be used: {error}", url=without_password(url), error=error
        ) from error


def _exists(storage: Any, name: str) -> bool:
    try:
        storage.get_study_id_from_name(name)
    except KeyError:
        return False
    return True


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """While this is open, no other process of the folder makes tables or studies."""
    held = Lock(folder, wait=True)
    try:
        yield
    finally:
        held.let_go()


# -- who does what -----------------------------------------------------------------------------------------------------


class SweepWorker:
    """This process among those that work on a study: a file that it holds for as long as it lives."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / WORKERS
        self._folder.mkdir(parents=True, exist_ok=True)
        self.name = uuid4().hex
        self._path = self._folder / self.name
        self._path.touch()
        self._held: Lock | None = Lock(self._path)
        self._has_locks = not _is_free(self._path)

    def close(self) -> None:
        """Let go."""
        if self._held is not None:
            self._path.unlink(missing_ok=True)
            self._held.let_go()
            self._held = None

    def has_left(self, trial: Any) -> bool:
        """Is the process that did this running trial known to be gone?"""
        name = trial.user_attrs.get(WORKER)
        if name is None:  # killed in the moment between making a trial and putting its name there
            began = trial.datetime_start
            return began is not None and datetime.now() - began > timedelta(seconds=2 * _GRACE_SECONDS)
        path = self._folder / str(name)
        return self._has_locks and path.parent == self._folder and is_file(path) and _is_free(path)


def _is_free(path: Path) -> bool:
    try:
        Lock(path).let_go()
    except (InUseError, FileNotFoundError):
        return False
    return True


def take_over(study: Any, worker: SweepWorker) -> list[Any]:
    """Queue again what processes left that are gone; gives those of this folder. Of several who try, one succeeds."""
    states, updated = optuna().trial.TrialState, optuna().exceptions.UpdateFinishedTrialError
    optuna().storages.fail_stale_trials(study)  # of other machines, by their heartbeat
    left = []
    for trial in study.get_trials(deepcopy=False, states=(states.RUNNING,)):
        if not worker.has_left(trial):
            continue
        with suppress(updated):
            if study._storage.set_trial_state_values(trial._trial_id, state=states.FAIL):
                do_again(study, trial)
                left.append(trial)
    return left


def do_again(study: Any, trial: Any, blamed: bool = True) -> None:
    """Queue a trial's values once more, for its own folder; not for ever, where it may be to blame."""
    times = int(trial.user_attrs.get(AGAIN, 0)) + blamed
    if times <= _MOST_AGAIN:
        kept = {name: trial.user_attrs[name] for name in (FOLDER, DEFAULT) if name in trial.user_attrs}
        study.enqueue_trial(trial.params, user_attrs={**kept, AGAIN: times})
