"""The indexes of a server, by name: documents that people may ask, named when the server starts, or made by jobs."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import PurePath

from kotha.api.index import Index
from kotha.api.model import LanguageModel
from kotha.errors import UsageError, nearest
from kotha.server.errors import RefusedError, by_name, start_with
from kotha.server.jobs.store import JobStore


class Indexes:
    """Indexes by name; for whoever is in a thread, as jobs are looked up on the disk."""

    def __init__(self, places: Iterable[str], jobs: JobStore | None = None) -> None:
        self._places, self._jobs = dict[str, str](), jobs
        for place in places:
            name = PurePath(place).stem
            if name in self._places:
                raise UsageError("two indexes are called {name}; rename one, since clients ask by name", name=name)
            self._places[name] = place
            with Index(place) as index:
                index.measures  # noqa: B018 - what is no index is said before anyone asks it

    def all(self) -> dict[str, tuple[str, str]]:
        """What people call each, and where it is, which they never learn."""
        made = {} if self._jobs is None else self._jobs.indexed()
        return {name: (name, place) for name, place in self._places.items()} | made

    @contextmanager
    def opened(self, name: str, model: LanguageModel | None = None) -> Iterator[Index]:
        """An index for one question, opened by the thread that asks; another may bring it up to date meanwhile."""
        known = self.all()
        if not known:
            raise RefusedError("this server has no indexes; {advice}", 404, advice=start_with("index"))
        if name not in known:
            raise RefusedError("there is no index {name!r}{nearest}", 404, name=name, nearest=nearest(name, known))
        _, place = known[name]
        with by_name({place: name}), Index(place, model) as index:
            yield index
