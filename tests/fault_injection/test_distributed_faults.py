"""The cases of ``make distributed-faults`` on virtual machines, and tests that need no network namespace."""

import json
import os
from pathlib import Path

import pytest
from tests.fault_injection import distributed, virtual_machines
from tests.fault_injection.distributed import CASES, Ground
from tests.launching import Launcher


@pytest.fixture(scope="module")
def ground(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Ground:
    if reason := virtual_machines.missing():
        pytest.skip(reason)
    return Ground(launcher, tmp_path_factory.mktemp("nodes") / "ground")


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_machines_learn_what_one_process_learns(ground: Ground, name: str) -> None:
    assert CASES[name](ground).wrong == []


def test_without_root_the_reason_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("sys.argv", ["distributed", "--out", str(tmp_path)])
    assert distributed.main() == 0
    assert capsys.readouterr().out == "skipped: only root may make network namespaces\n"
    assert not list(tmp_path.iterdir())


def test_a_line_that_is_being_written_is_no_loss_yet(tmp_path: Path) -> None:
    assert distributed.losses(tmp_path) == []
    rows = [{"step": 1, "loss_nats": 2.5}, {"step": 1, "validation": {"loss_nats": 9.0}}, {"step": 2, "loss_nats": 2.0}]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"step": 3, "lo')
    assert distributed.losses(tmp_path) == [2.5, 2.0]


def test_how_many_go_on_is_read_from_what_they_say(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("kotha: float32 on cpu\n")
    assert distributed.going_on(log) is None
    log.write_text("kotha: resuming from step 42 of 400, in 2 processes\n")
    assert distributed.going_on(log) == 2
    log.write_text(log.read_text() + "kotha: resuming from step 1,042 of 4,000\n")
    assert distributed.going_on(log) == 1
