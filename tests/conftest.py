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


@pytest.fixture(scope="session")
def launcher() -> Iterator[Launcher]:
    with Launcher() as made:
        yield made
