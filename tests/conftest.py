"""For all tests: where the shared data is, what starts commands quickly, and how hypothesis looks for counter-examples.

No deadline, because a busy machine is not a defect. On CI the examples are the same each time, so that red means that
the change did it; elsewhere they are drawn anew.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.launching import Launcher

settings.register_profile(
    "kotha", deadline=None, derandomize=bool(os.environ.get("CI")), suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("kotha")

# Real Bangla data beside the checkout; tests that read it are skipped where it is not.
SHARED_DATA = Path(os.environ.get("KOTHA_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))

# The files that take the longest, longest first: begun last, one of them would keep a whole suite waiting.
LONGEST = (
    "studio/test_look.py",
    "fuzz/test_fuzz.py",
    "book/test_chapters_in_english.py",
    "studio/test_built.py",
    "studio/test_teach.py",
    "studio/test_hand.py",
    "server/test_safety.py",
    "training/test_all_learn.py",
    "training/test_distributed.py",
    "generation/test_engine.py",
    "export/onnx/test_onnx.py",
    "evaluation/doctor/test_doctor.py",
    "test_docs.py",
    "book/test_site.py",
    "book/test_chapters_in_bangla.py",
    "test_api.py",
    "export/gguf/test_gguf.py",
    "training/test_loop.py",
    "text/test_prepare.py",
    "cli/test_demo.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bring the longest files to the front; the others stay as they are."""
    turns = {Path(__file__).parent / name: turn for turn, name in enumerate(LONGEST)}
    items.sort(key=lambda item: turns.get(item.path, len(turns)))


@pytest.fixture(scope="session")
def launcher() -> Iterator[Launcher]:
    with Launcher() as made:
        yield made
