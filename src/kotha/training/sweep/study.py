"""The study behind a sweep: a database that many processes and machines share (Optuna, SQLite by default).

Who works on a study holds a file of its own in the sweep folder, under a lock that the kernel lets go when the process
ends, however it ends; each trial names the file of who does it. So a trial that a killed process left running is known
at once on the same folder. Between machines that share only the database, a heartbeat every few seconds says the same
after a minute. Either way the trial is done again with the same values, and goes on from its checkpoint where there is
one. A trial that was left so several times is given up: it may be what kills its process.

What the sweep is (data, settings, what is searched) is written into the study by whoever makes it, and everybody else
reads it there.
"""

import re
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from kotha.errors import KothaError, UsageError, library
from kotha.storage.atomic import filled_folder
from kotha.storage.locks import InUseError, Lock

DATABASE, WORKERS = "study.db", "workers"
ABOUT = "kotha_sweep"  # the attribute of a study that says what it is
# Attributes of a trial: who does it, in which folder, whether it is the default recipe, how often it was done again.
WORKER, FOLDER, DEFAULT, AGAIN = "worker", "folder", "default", "again"
_MOST_AGAIN = 3
_HEARTBEAT_SECONDS, _GRACE_SECONDS = 15, 60
_WAIT_FOR_DATABASE = 60  # seconds in which another process may be writing a SQLite file
_WAIT_FOR_ABOUT = 5.0  # in which a study that another machine is making says what it is

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
        reason = str(getattr(error, "orig", None) or error.__cause__ or error).strip()
        raise KothaError(
            "the database {url} cannot be used: {why}; see that it is there, and that you may write to it",
            url=without_password(url),
            why=reason.partition("\n")[0],
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
    with filled_folder(folder):
        alone = Lock(folder, wait=True)  # no other process of the folder makes tables or studies
        try:
            named: dict[str, Any] = {"study_name": name, "storage": _storage(url)}
            if name not in found.get_all_study_names(named["storage"]):
                told = about()  # before the study is there, so that nobody waits for it
                with suppress(found.exceptions.DuplicatedStudyError):  # made by another machine meanwhile
                    found.create_study(**named).set_user_attr(ABOUT, told)
            study = found.load_study(**named)
        finally:
            alone.let_go()
    if ABOUT not in study.user_attrs:
        time.sleep(_WAIT_FOR_ABOUT)
    if ABOUT not in study.user_attrs:
        raise UsageError(
            "the study {name!r} of {url} is not a sweep of ours; name another", name=name, url=without_password(url)
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
    except (RuntimeError, ValueError) as error:  # tables of another version of Optuna
        raise KothaError(
            "the database {url} cannot be used: {error}", url=without_password(url), error=error
        ) from error


# -- who does what -----------------------------------------------------------------------------------------------------


class SweepWorker:
    """This process among those that work on a study: a file that it holds for as long as it lives."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.name = folder / WORKERS, uuid4().hex
        self._folder.mkdir(parents=True, exist_ok=True)
        self._path = self._folder / self.name
        self._path.touch()
        self._held = Lock(self._path)
        self._has_locks = not _is_free(self._path)

    def close(self) -> None:
        """Let go."""
        self._path.unlink(missing_ok=True)
        self._held.let_go()

    def has_left(self, trial: Any) -> bool:
        """Is the process that did this running trial known to be gone?"""
        name = trial.user_attrs.get(WORKER)
        if name is None:  # killed in the moment between making a trial and putting its name there
            began = trial.datetime_start
            return began is not None and datetime.now() - began > timedelta(seconds=2 * _GRACE_SECONDS)
        return self._has_locks and _is_free(self._folder / Path(str(name)).name)


def _is_free(path: Path) -> bool:
    try:
        Lock(path).let_go()
    except (InUseError, FileNotFoundError):  # of another machine
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
