"""Jobs on systems without /proc."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from kotha.server.jobs import store, table
from kotha.server.jobs.table import JobConflictError


def test_without_proc_the_start_time_comes_from_ps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "Path", lambda _: Path("/nowhere"))
    monkeypatch.setattr(table, "sys", SimpleNamespace(platform="darwin"))
    mine = table.process_start_time(os.getpid())
    assert mine is not None and mine == table.process_start_time(os.getpid()) and len(mine.split()) == 5
    with subprocess.Popen([sys.executable, "-c", "pass"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # a zombie: ended, but not yet waited for
        assert table.process_start_time(child.pid) is None
    assert table.process_start_time(child.pid) is None


def test_jobs_are_rejected_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "sys", SimpleNamespace(platform="win32"))
    with pytest.raises(JobConflictError, match="cannot run jobs on Windows"):
        store._check_system()
