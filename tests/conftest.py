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

# The second tier, which `make test-extended` runs: browsers, other programs, machines and systems, broken inputs and
# disks, kills, every chapter, how-to and benchmark.
EXTENDED = (
    "benchmarks",
    "book",
    "browser",
    "cli/test_interrupts.py",
    "cli/test_kills.py",
    "fault_injection",
    "fuzz",
    "platform_simulation",
    "server/test_clients.py",
    "server/test_faults.py",
    "server/test_soak.py",
    "studio",
    "test_howto.py",
    "test_notebook.py",
    "text/test_corpus_fuzz.py",
    "text/test_ray_",
    "training/test_distributed.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the second tier, by where they are."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and item.path.relative_to(here).as_posix().startswith(EXTENDED):
            item.add_marker(pytest.mark.extended)


@pytest.fixture(scope="session")
def launcher() -> Iterator[Launcher]:
    with Launcher() as made:
        yield made
