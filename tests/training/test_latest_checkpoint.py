"""Which checkpoint a training goes on from: a broken one is passed over, one that cannot be read just now is not."""

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from kotha.artifacts.run_folder import RunFolder
from kotha.errors import CheckpointError, is_short_of_memory
from kotha.training import checkpoint
from kotha.training.checkpoint import Checkpoint, checkpoint_path, latest_checkpoint
from kotha.training.checkpointer import Checkpointer


def test_checkpoints_that_cannot_be_listed_are_not_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a training would begin again at its first step, and forget what it had measured."""
    assert latest_checkpoint(tmp_path / "never begun") is None

    def unlisted(self: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(self))

    monkeypatch.setattr(Path, "iterdir", unlisted)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        latest_checkpoint(tmp_path)
    saver = SimpleNamespace(folder=RunFolder(tmp_path))
    place = f"in {tmp_path / 'checkpoints'}, which cannot be read (Input/output error)"
    assert str(Checkpointer.last_good(saver)) == place, "what went wrong first is not told for this"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: BaseException) -> Path:
    """Two checkpoints, of which the newer one has a problem."""

    def load(path: Path, *_: object) -> Checkpoint:
        if path == checkpoint_path(tmp_path, 6):
            raise CheckpointError(f"{path} cannot be read: {problem}") from problem
        return Checkpoint(3, {}, {})

    for step in (3, 6):
        checkpoint_path(tmp_path, step).mkdir()
    monkeypatch.setattr(checkpoint, "load_checkpoint", load)
    return tmp_path


@pytest.mark.parametrize(
    "problem",
    [
        OSError(errno.EIO, os.strerror(errno.EIO)),
        OSError(errno.EMFILE, os.strerror(errno.EMFILE)),
        OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
        RuntimeError("unable to mmap 9 bytes from file <model.safetensors>: Cannot allocate memory (12)"),
    ],
)
def test_one_that_this_machine_cannot_read_now_is_told(folder: Path, problem: Exception) -> None:
    with pytest.raises(CheckpointError, match="step-00000006 cannot be read") as told:
        latest_checkpoint(folder)
    assert is_short_of_memory(told.value) == ("allocate memory" in str(problem))
