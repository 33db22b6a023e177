"""The checkpoint from which a run resumes: corrupt ones are skipped, and unreadable ones raise an error."""

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


def test_an_error_while_listing_checkpoints_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise, a run would restart from the first step and lose its progress."""
    assert latest_checkpoint(tmp_path / "never begun") is None

    def unlisted(self: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(self))

    monkeypatch.setattr(Path, "iterdir", unlisted)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        latest_checkpoint(tmp_path)
    saver = SimpleNamespace(folder=RunFolder(tmp_path))
    place = f"in {tmp_path / 'checkpoints'}, which cannot be read (Input/output error)"
    assert str(Checkpointer.last_good(saver)) == place, "the first error is kept"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: BaseException) -> Path:
    """Two checkpoints; loading the newer one fails."""

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
def test_an_unreadable_checkpoint_raises_an_error(folder: Path, problem: Exception) -> None:
    with pytest.raises(CheckpointError, match="step-00000006 cannot be read") as raised:
        latest_checkpoint(folder)
    assert is_short_of_memory(raised.value) == ("allocate memory" in str(problem))
