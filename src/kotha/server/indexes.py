"""The indexes of a server, by name: documents that people may ask, named when the server starts, or made by jobs."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath

from kotha.api.index import Index
from kotha.api.model import LanguageModel
from kotha.errors import KothaError, UsageError, nearest
from kotha.i18n.message import Message
from kotha.server.errors import by_name
from kotha.server.settings import StartAdvice


class NoSuchIndexError(KothaError):
    """A name that no index of this server has."""

    status = 404


class ServedIndex:
    """An index by the name that clients know, and what people call it; where it is they never learn."""

    def __init__(self, name: str, place: str, title: str = "") -> None:
        self.name, self._place, self.title = name, place, title or name

    @contextmanager
    def opened(self, model: LanguageModel | None = None) -> Iterator[Index]:
        """The index for one question, opened by the thread that asks; another may bring it up to date meanwhile."""
        with by_name({self._place: self.name}), Index(self._place, model) as index:
            yield index


class Indexes:
    """Indexes by name."""

    def __init__(self, places: Iterable[str], advice: Message = StartAdvice.index) -> None:
        self._advice = advice  # where there are none
        self.made: Callable[[], dict[str, tuple[str, Path]]] = dict  # title and place of those that came of jobs since
        self._made: dict[str, ServedIndex] = {}
        self._known: dict[str, ServedIndex] = {}
        for place in places:
            name = PurePath(place).stem
            if name in self._known:
                raise UsageError("two indexes are called {name}; rename one, since clients ask by name", name=name)
            self._known[name] = ServedIndex(name, place)
            with Index(place) as index:
                index.measures  # noqa: B018 - what is no index is said before anyone asks it

    def all(self) -> dict[str, ServedIndex]:
        """Every index by its name; for whoever is in a thread, as jobs are looked up on the disk."""
        made = self.made()
        for name, (title, place) in made.items():
            self._made.setdefault(name, ServedIndex(name, str(place), title))
        return self._known | {name: self._made[name] for name in made}

    def named(self, name: str) -> ServedIndex:
        """The index of a name; for whoever is in a thread."""
        if name in self._known:
            return self._known[name]
        known = self.all()
        if not known:
            raise NoSuchIndexError("this server has no indexes; {advice}", advice=self._advice)
        if name not in known:
            raise NoSuchIndexError("there is no index {name!r}{nearest}", name=name, nearest=nearest(name, known))
        return known[name]
