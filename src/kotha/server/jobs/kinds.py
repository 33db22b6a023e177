"""What can be asked for as a job, and the commands that do it; files and folders are named by ids alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from kotha.errors import nearest
from kotha.finetune.pairs import USUAL_PRESET
from kotha.i18n.message import Message
from kotha.model.presets import PRESETS, preset
from kotha.server.errors import RefusedError
from kotha.server.jobs.store import JOB_PLACE, OUT_PLACE, JobStore
from kotha.server.wire import FieldError, Id, ModelName, SeenName, Tags, WireRequest
from kotha.training.plan.rules import choose_vocabulary

# A command line holds so many.
MOST_TEXTS = 1000
# Bytes, ASCII and special tokens take 364 of a unigram's; with fewer than these there is little room for pieces.
LEAST_VOCABULARY = 512
# A story of the grammar, on the average.
_STORY_BYTES = 2500
PlaceOfModel = Callable[[str], Path]
# What begins as a flag does is no name of a column.
ColumnName = Annotated[str, Field(pattern="^[^-]", max_length=200)]
TwoColumnNames = tuple[ColumnName, ColumnName]
_ENDED = {
    "running": Message("is not done yet"),
    "failed": Message("failed"),
    "stopped": Message("was stopped"),
    "killed": Message("was killed"),
}
_WAIT, _AGAIN = Message("wait until it is done"), Message("begin it again and use the new id")


def job_output(store: JobStore, id: str, kind: str, param: str) -> Path:
    """Where what came of a job is, once it is known to be of this kind, and done."""
    if store.uploads.has(id):
        raise RefusedError(
            "{id} is a file; {field} takes the id of a {kind} job, which is made from files",
            param=param,
            id=id,
            field=param,
            kind=kind,
        )
    status = store.status(id)
    if status.kind != kind:
        raise RefusedError(
            "{id} is a {kind} job; {field} takes the id of a {wanted} job",
            param=param,
            id=id,
            field=param,
            kind=status.kind,
            wanted=kind,
        )
    if status.state != "done":
        raise RefusedError(
            "the {kind} job {id} {ended}, see GET /api/jobs/{id}; {advice}",
            409,
            param,
            kind=kind,
            id=id,
            ended=_ENDED[status.state],
            advice=_WAIT if status.state == "running" else _AGAIN,
        )
    return store.result(id)


def uploaded_file(store: JobStore, id: str, param: str) -> Path:
    """Where a file is that was brought, once it is known that the id is a file's."""
    if not store.uploads.has(id) and store.has(id):
        raise RefusedError(
            "{id} is a job; {field} takes ids of files, which POST /api/files gives", param=param, id=id, field=param
        )
    return store.uploads.place(id)


def uploaded_table(store: JobStore, id: str, param: str) -> Path:
    """Where a file is that was brought, once it is known to have columns."""
    table = uploaded_file(store, id, param)
    if table.suffix == ".txt":
        raise RefusedError(
            "{id} was brought as txt, which has no fields; bring the table as jsonl, csv or tsv", param=param, id=id
        )
    return table


def _flags(**given: object) -> list[str]:
    """Options of a command; None is none.

    >>> _flags(vocab_size=512, reverse=True, seed=None, pair=("a", "b"))
    ['--vocab-size', '512', '--reverse', '--pair', 'a', 'b']
    """
    words = []
    for name, value in given.items():
        if value is not None and value is not False:
            values = () if value is True else value if isinstance(value, tuple) else (value,)
            words += [f"--{name.replace('_', '-')}", *map(str, values)]
    return words


class _Job(WireRequest):
    name: SeenName = ""
    tags: Tags | None = None

    @model_validator(mode="after")
    def _can_be_said(self) -> Self:
        """No command takes a NUL; ours are marked by it."""
        for name, value in self:
            words = value if isinstance(value, list | tuple) else [value]
            if any(isinstance(word, str) and "\0" in word for word in words):
                raise FieldError("{name} has a letter that cannot be seen, U+0000; leave it out", name=name)
        return self

    def flags(self, *names: str, **more: object) -> list[str]:
        """Options of the last command: some of its fields, and others."""
        return _flags(**{name: getattr(self, name) for name in names}, **more, out=OUT_PLACE)


class _FromTexts(_Job):
    texts: list[Id] = Field(min_length=1, max_length=MOST_TEXTS)

    def read(self, store: JobStore) -> list[str]:
        """Where the texts are."""
        return [str(uploaded_file(store, id, "texts")) for id in self.texts]


class ModelSizes(WireRequest):
    """Sizes up to those of the largest models that were published: each layer is laid out, which takes its time."""

    n_layers: int | None = Field(None, ge=1, le=128)
    d_model: int | None = Field(None, ge=1, le=1 << 14)
    n_heads: int | None = Field(None, ge=1, le=256)
    context_length: int | None = Field(None, ge=1, le=1 << 20)
    batch_size: int | None = Field(None, ge=1, le=1 << 20)


class DesignedSettings(ModelSizes):
    """Sizes of a model and settings of its training, those that differ from a preset's and from the recipe's."""

    learning_rate: float | None = Field(None, gt=0, le=10)
    warmup_steps: int | None = Field(None, ge=0, le=1_000_000_000)
    decay_steps: int | None = Field(None, ge=1, le=1_000_000_000)


class TokenizerJob(_FromTexts):
    """Train a tokenizer on files that were brought."""

    kind: Literal["tokenizer"]
    tokenizer_kind: Literal["unigram", "bpe", "wordpiece"] = "unigram"
    vocab_size: int = Field(8192, ge=LEAST_VOCABULARY, le=200_000)

    def commands(self, store: JobStore, _: PlaceOfModel) -> list[list[str]]:
        """The command."""
        return [["tokenizer", "train", *self.read(store), *self.flags("vocab_size", kind=self.tokenizer_kind)]]


class PrepareJob(_FromTexts):
    """Turn files that were brought into data, with a tokenizer that was trained."""

    kind: Literal["prepare"]
    tokenizer: Id
    validation: float = Field(0.05, gt=0, lt=1)

    def commands(self, store: JobStore, _: PlaceOfModel) -> list[list[str]]:
        """The command."""
        tokenizer = job_output(store, self.tokenizer, "tokenizer", "tokenizer")
        return [["prepare", *self.read(store), *self.flags("validation", tokenizer=tokenizer)]]


class TrainJob(_Job):
    """Train a model on data that were prepared, for so many minutes."""

    kind: Literal["train"]
    data: Id
    minutes: float = Field(gt=0, le=24 * 60)
    seed: int = Field(0, ge=0, lt=1 << 63)

    def commands(self, store: JobStore, _: PlaceOfModel) -> list[list[str]]:
        """The command."""
        return [["train", str(job_output(store, self.data, "prepare", "data")), *self.flags("minutes", "seed")]]


class _ForSoLong(_Job):
    start: ModelName | None = None
    minutes: float | None = Field(None, gt=0, le=24 * 60)
    steps: int | None = Field(None, ge=1, le=1_000_000_000)
    seed: int = Field(0, ge=0, lt=1 << 63)

    @model_validator(mode="after")
    def _has_one_length(self) -> Self:
        if (self.minutes is None) == (self.steps is None):
            raise FieldError("say how long: minutes or steps, one of them")
        return self


class LearnJob(_ForSoLong, _FromTexts):
    """The whole way in one job: texts, or stories of the built-in grammar, to a trained model."""

    kind: Literal["learn"]
    texts: list[Id] = Field([], max_length=MOST_TEXTS)
    stories: int = Field(2000, ge=50, le=100_000)
    vocab_size: int | None = Field(None, ge=LEAST_VOCABULARY, le=200_000)
    preset: str | None = Field(None, pattern=r"^[a-z0-9][a-z0-9.-]{0,79}$")
    sizes: DesignedSettings | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.start is not None and (self.preset, self.vocab_size, self.sizes) != (None, None, None):
            raise FieldError(
                "a model that goes on keeps its sizes and its tokenizer; leave out preset, sizes, vocab_size"
            )
        if self.preset is None:
            if self.sizes is not None:
                raise FieldError("sizes are changes to a preset; name one")
        elif self.preset not in PRESETS:
            close = nearest(self.preset, PRESETS)
            raise FieldError("preset {preset!r} does not exist{nearest}", preset=self.preset, nearest=close)
        elif self._family not in ("gpt", "bert"):
            raise FieldError("preset {preset!r} does not learn from texts", preset=self.preset)
        return self

    @property
    def _family(self) -> str:
        return "gpt" if self.preset is None else preset(self.preset).family

    def commands(self, store: JobStore, place: PlaceOfModel) -> list[list[str]]:
        """Stories, a tokenizer, data, the training."""
        texts, n_bytes, found = self.read(store), self.stories * _STORY_BYTES, []
        if texts:
            n_bytes = sum(Path(text).stat().st_size for text in texts)
        else:
            texts = [f"{JOB_PLACE}/stories.jsonl"]
            found.append(["corpus", "stories", *_flags(documents=self.stories, seed=self.seed, out=texts[0])])
        tokenizer, data, sizes = f"{JOB_PLACE}/tokenizer", f"{JOB_PLACE}/data", []
        if self.start is not None:
            tokenizer = str(place(self.start))
            sizes = ["--from", tokenizer]
        else:
            # A BERT hides words, for which its tokenizer needs marks that others do without.
            kind = "wordpiece" if self._family == "bert" else None
            size = self.vocab_size or choose_vocabulary(n_bytes)
            found.append(["tokenizer", "train", *texts, *_flags(kind=kind, vocab_size=size, out=tokenizer)])
        chosen = {} if self.sizes is None else self.sizes.model_dump(exclude_none=True)
        for name, value in chosen.items():
            sizes += _flags(set=f"{name}={value}")
        found.append(["prepare", *texts, *_flags(tokenizer=tokenizer, out=data)])
        return [*found, ["train", data, *_flags(preset=self.preset), *sizes, *self.flags("minutes", "steps", "seed")]]


class _FromTable(_Job):
    table: Id
    broken: Literal["stop", "skip"] = "stop"
    fields: TwoColumnNames | None = None

    def read(self, store: JobStore) -> str:
        """Where the table is."""
        return str(uploaded_table(store, self.table, "table"))


class AdaptJob(_FromTable):
    """Teach a model that was trained to name classes, or to answer, from a table that was brought."""

    kind: Literal["adapt"]
    use: Literal["classify", "instruct"]
    model: str
    epochs: float = Field(4.0, gt=0, le=100)

    def commands(self, store: JobStore, place: PlaceOfModel) -> list[list[str]]:
        """The command."""
        columns = ("text", "label") if self.use == "classify" else ("instruction", "answer")
        named = dict(zip(columns, self.fields or (None, None), strict=True))
        how = self.flags("epochs", **named, errors=self.broken)
        return [["adapt", self.use, self.read(store), "--from", str(place(self.model)), *how]]


class PairsJob(_FromTable, _ForSoLong):
    """Make a translator from a table of texts and their translations."""

    kind: Literal["pairs"]
    reverse: bool = False

    def commands(self, store: JobStore, place: PlaceOfModel) -> list[list[str]]:
        """The command."""
        model = ["--preset", USUAL_PRESET] if self.start is None else ["--from", str(place(self.start))]
        how = self.flags("minutes", "steps", pair=self.fields, reverse=self.reverse, errors=self.broken, seed=self.seed)
        return [["train", self.read(store), *model, *how]]


class IndexJob(_FromTexts):
    """Make an index of documents that were brought, to ask questions of."""

    kind: Literal["index"]
    model: ModelName | None = None

    def commands(self, store: JobStore, place: PlaceOfModel) -> list[list[str]]:
        """The command."""
        model = None if self.model is None else place(self.model)
        return [["index", *self.read(store), *self.flags(model=model, errors="replace")]]


JobRequest = Annotated[
    TokenizerJob | PrepareJob | TrainJob | LearnJob | AdaptJob | PairsJob | IndexJob, Field(discriminator="kind")
]
