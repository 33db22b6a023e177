"""Which crew: processes on this machine unless a cluster is named."""

from collections.abc import Iterator
from contextlib import contextmanager

from kotha.errors import UsageError
from kotha.i18n.message import Option
from kotha.text.parallel.cluster import check_address, ray_crew
from kotha.text.parallel.duty import Crew
from kotha.text.parallel.local import LocalCrew


def check_crew(on: str | None, workers: int | None) -> None:
    """Refuse a place that cannot be one, and a crew of nobody."""
    if workers is not None and workers < 1:
        raise UsageError("{workers}: give at least 1", workers=Option("workers", workers))
    if on is not None:
        check_address(on)


@contextmanager
def crew_on(on: str | None, workers: int | None, here: int = 1) -> Iterator[Crew]:
    """The crew that ``on`` names: None for this machine's processes, ``ray`` or ``ray://HOST:PORT``.

    By default a cluster gives a worker for each core, and this machine ``here`` of them.
    """
    if on is None:
        yield LocalCrew(workers or here)
        return
    with ray_crew(on, workers) as crew:
        yield crew
