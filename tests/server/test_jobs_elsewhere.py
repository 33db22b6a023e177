"""Jobs on systems that know less of processes than Linux does."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from kotha.server.jobs import job, store
from kotha.server.jobs.errors import JobConflictError


def test_where_there_is_no_proc_ps_says_when_a_process_began(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "Path", lambda _: Path("/nowhere"))
    monkeypatch.setattr(job, "sys", SimpleNamespace(platform="darwin"))
    mine = job.began(os.getpid())
    assert mine is not None and mine == job.began(os.getpid()) and len(mine.split()) == 5
    with subprocess.Popen([sys.executable, "-c", "pass"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody has asked how
        assert job.began(child.pid) is None
    assert job.began(child.pid) is None


def test_a_server_on_windows_says_that_it_keeps_no_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "sys", SimpleNamespace(platform="win32"))
    with pytest.raises(JobConflictError, match="no jobs on Windows"):
        store._check_system()
