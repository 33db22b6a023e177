"""A jobs folder that other users can change is rejected, and only a job's own process is stopped."""

import subprocess
import sys
from pathlib import Path

import pytest

from kotha.errors import KothaError
from kotha.server.jobs.store import JobStore
from kotha.server.jobs.table import insert, process_start_time, transaction

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="jobs need POSIX permissions and signals")


@pytest.mark.parametrize("name", [".", "uploads", "0123456789ab"])
def test_a_folder_that_others_can_write_to_is_rejected(tmp_path: Path, name: str) -> None:
    JobStore(tmp_path)
    (tmp_path / name).mkdir(exist_ok=True)
    (tmp_path / name).chmod(0o777)
    with pytest.raises(KothaError, match="chmod go-w"):
        JobStore(tmp_path)


@pytest.mark.parametrize("name", ["jobs.sqlite", "uploads", "0123456789ab", "0123456789ab/log.txt"])
def test_a_link_in_the_folder_is_rejected(tmp_path: Path, name: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret", encoding="utf-8")
    link = tmp_path / "jobs" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(secret)
    with pytest.raises(KothaError, match="is a link"):
        JobStore(tmp_path / "jobs")


def test_a_process_that_is_not_the_jobs_is_not_stopped(tmp_path: Path) -> None:
    store, id = JobStore(tmp_path), "0123456789ab"
    (tmp_path / id).mkdir()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        with transaction(tmp_path, write=True) as table:
            started = process_start_time(other.pid)
            insert(table, id=id, kind="train", name="", commands=[], began=0.0, pid=other.pid, process=started)
        with pytest.raises(KothaError, match="was not started for the job"):
            store.stop(id)
        assert other.poll() is None
        other.kill()
