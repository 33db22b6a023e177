"""Jobs on systems that know less of processes than Linux does."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from kotha.server.jobs import store, table
from kotha.server.jobs.table import JobConflictError


def test_where_there_is_no_proc_ps_says_when_a_process_began(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "Path", lambda _: Path("/nowhere"))
    monkeypatch.setattr(table, "sys", SimpleNamespace(platform="darwin"))
    mine = table.began(os.getpid())
    assert mine is not None and mine == table.began(os.getpid()) and len(mine.split()) == 5
    with subprocess.Popen([sys.executable, "-c", "pass"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody has asked how
        assert table.began(child.pid) is None
    assert table.began(child.pid) is None


def test_a_server_on_windows_says_that_it_keeps_no_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "sys", SimpleNamespace(platform="win32"))
    with pytest.raises(JobConflictError, match="no jobs on Windows"):
        store._check_system()
