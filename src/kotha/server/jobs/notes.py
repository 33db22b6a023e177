"""What stands in a job's folder, read with distrust: a note of another shape is damage, and is told as such."""

from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from kotha.errors import is_of_the_machine
from kotha.i18n.message import Message
from kotha.server.jobs.errors import DamagedJobError
from kotha.server.jobs.labels import LABEL, Name, Tags
from kotha.server.naming import by_name
from kotha.storage.json_files import read_table
from kotha.storage.status import is_file, is_there

# A thousand files may be named, each by its whole path.
_MOST_BYTES = 8 << 20
_HIGHEST_SIGNAL = 64

# 0 and what is below it mean many processes at once to the system, and 1 is the first of all.
ProcessId = Annotated[int, Field(gt=1, lt=1 << 31)]


def _as_utf8(text: str) -> str:
    text.encode()  # half a character of JSON's can be read, and never be sent on
    return text


NoteText = Annotated[str, AfterValidator(_as_utf8)]


class _Note(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class JobNote(_Note):
    """What was asked for."""

    kind: NoteText
    name: NoteText
    commands: list[list[NoteText]] = Field(min_length=1)
    began: float
    files: list[NoteText] = []  # that were brought for it, by their ids; also once no command names them any more

    @property
    def words(self) -> list[str]:
        """Every word of its commands."""
        return [word for command in self.commands for word in command]

    @property
    def stages(self) -> dict[str, bool]:
        """The commands before the last, by name, and whether what each makes is there: whole, or not at all."""
        names = {"corpus": 1}  # of most commands the first word says what is done
        return {
            command[names.get(command[0], 0)]: is_there(Path(command[command.index("--out") + 1]))
            for command in self.commands[:-1]
            if "--out" in command[:-1]
        }


class ProcessNote(_Note):
    """Which process does it; a number is given to others later, so when that one began, in the machine's ticks."""

    pid: ProcessId
    began: str | None


class ExitNote(_Note):
    """How its command ended; a negative code is the signal that ended it."""

    code: int = Field(ge=-_HIGHEST_SIGNAL, le=255)
    ended: float
    why: NoteText | None = None


class LabelNote(_Note):
    """What people call it since, and the tags that they gave it."""

    name: Annotated[Name, AfterValidator(_as_utf8)] = ""
    tags: Tags = []


N = TypeVar("N", bound=_Note)


def read_note(path: Path, kind: type[N]) -> N:
    """A note; where the folder is, no message says."""
    try:
        with by_name({f"{path.parent}/": ""}):
            return kind.model_validate(read_table(path, DamagedJobError, _MOST_BYTES))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise DamagedJobError(
            "{name} is broken: {field}: {why}", name=path.name, field=field, why=first["msg"]
        ) from error


def read_label(folder: Path) -> LabelNote:
    """A job's label, to be changed: a broken one is begun anew, but not one that cannot be read just now."""
    try:
        return _label_in(folder)
    except DamagedJobError as error:
        if is_of_the_machine(error):
            raise
        return LabelNote()


def label_of(folder: Path) -> tuple[LabelNote, Message | None]:
    """A job's label, and what is wrong with it: a broken one takes nothing from the job but its tags."""
    try:
        return _label_in(folder), None
    except DamagedJobError as error:
        return LabelNote(), Message("its label is not shown: {why}", why=error)


def _label_in(folder: Path) -> LabelNote:
    return read_note(folder / LABEL, LabelNote) if is_file(folder / LABEL) else LabelNote()
