"""The folder of a temporary Ray cluster is removed with the cluster, even on a signal."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from kotha.storage.atomic import give_up
from kotha.text.parallel import ray_cluster


class _Here:
    """A fake Ray that records its folder."""

    folder: Path

    def init(self, _: str, _temp_dir: str, **__: object) -> None:
        self.folder = Path(_temp_dir)
        (self.folder / "session").mkdir()

    def shutdown(self) -> None:
        pass


def test_the_folder_is_removed_at_the_end_and_on_a_signal() -> None:
    ray = _Here()
    with ray_cluster._connected(ray, None, 1):
        assert (ray.folder / "session").is_dir() and ray.folder.name.startswith("kotha-ray-")
    assert not ray.folder.exists()
    with ray_cluster._connected(ray, None, 1):
        assert give_up() and not ray.folder.exists(), "as the handler of a signal does it"


def test_ray_processes_are_killed_before(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[dict[str, bool]] = []
    node = SimpleNamespace(kill_all_processes=lambda **how: ended.append(how))
    monkeypatch.setitem(sys.modules, "ray._private.worker", SimpleNamespace(_global_node=node))
    ray_cluster.end_at_once()
    assert ended == [{"check_alive": False, "allow_graceful": False}]
    monkeypatch.setitem(sys.modules, "ray._private.worker", SimpleNamespace(_global_node=None))
    ray_cluster.end_at_once()  # a cluster on another machine is not touched
    assert len(ended) == 1
