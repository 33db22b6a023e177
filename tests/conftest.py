"""Settings for all tests: the path of the shared data, a fast start of commands, and the profile of hypothesis.

Hypothesis has no deadline, because a slow example may be caused by a busy machine. On CI, the examples are the same in
every run, so a new failure is caused by the change under test; elsewhere, they are random.
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

# Real Bangla data next to the checkout; tests that need it are skipped if it is missing.
SHARED_DATA = Path(os.environ.get("KOTHA_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))

# The second tier, run by `make test-extended`: browsers, other programs, machines and platforms, invalid input, I/O
# errors, kills, and every chapter, how-to guide and benchmark.
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


def of_the_second_tier(path: Path) -> bool:
    return path.relative_to(Path(__file__).parent).as_posix().startswith(EXTENDED)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip files without tests in the tier that the Makefile selects, which saves half a minute per process."""
    if collection_path.suffix != ".py" or collection_path.name == "__init__.py":
        return None
    if not collection_path.name.startswith("test_"):
        return True  # a helper without doctests
    second = of_the_second_tier(collection_path)
    match config.option.markexpr:
        case "not slow and not extended" if second:
            return True
        case "extended and not slow" if not second and "mark.extended" not in collection_path.read_text("utf-8"):
            return True
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests in the second tier by their location."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and of_the_second_tier(item.path):
            item.add_marker(pytest.mark.extended)


@pytest.fixture(scope="session")
def launcher() -> Iterator[Launcher]:
    with Launcher() as made:
        yield made
