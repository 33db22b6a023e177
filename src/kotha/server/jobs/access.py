"""Checks that only the server's user can change a jobs folder.

Another user who can write to the folder could replace its files with links, which the server would read out, or name
any process as that of a job, which ``stop`` would then end.
"""

import os
import stat
import subprocess
import sys
from pathlib import Path

from kotha.errors import KothaError
from kotha.server.jobs.job_process import ERROR, LOG
from kotha.storage.status import exists

_CHECKED_IN_JOB = (LOG, ERROR, "out")


def check_folder(folder: Path) -> None:
    """Raise an error if a jobs folder or an entry in it is a link, belongs to another user, or is open to others."""
    if sys.platform == "win32" or not exists(folder):
        return
    _check(folder, folder.stat(), is_folder=True)
    for path in folder.iterdir():
        for each in (path, *(path / name for name in _CHECKED_IN_JOB)):
            try:
                found = each.lstat()
            except OSError:  # not there, or not a folder
                continue
            _check(each, found, is_folder=each == path and stat.S_ISDIR(found.st_mode))


def _check(path: Path, found: os.stat_result, is_folder: bool) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise KothaError("{path} is a link; the jobs folder must contain the file itself", path=path)
    if sys.platform != "win32" and found.st_uid not in (0, os.geteuid()):
        raise KothaError("{path} belongs to another user; use a jobs folder of your own", path=path)
    if is_folder and (found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and not _is_private(found.st_gid))):
        raise KothaError(
            "other users can write to {path}; restrict it with `chmod go-w`, or use another jobs folder", path=path
        )


def _is_private(group: int) -> bool:
    """Return whether a group is the user's own, which many systems create for each user."""
    if sys.platform == "win32":
        return True
    import grp
    import pwd

    try:
        known = grp.getgrgid(group)
        return known.gr_name == pwd.getpwuid(os.geteuid()).pw_name and not known.gr_mem
    except KeyError:  # in a container, without names
        return group == os.getegid()


def is_job_process(pid: int, id: str) -> bool:
    """Return whether a process was started for a job."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace").split("\0")
    except OSError:
        if sys.platform == "linux":
            return False
        command = ["ps", "-o", "command=", "-p", str(pid)]
        words = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    return "kotha.server.jobs.job_process" in words and any(word.endswith(f"/{id}") for word in words)
