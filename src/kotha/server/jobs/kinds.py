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
from kotha.server.jobs.labels import SeenName, Tags
from kotha.server.jobs.legacy import DAMAGED
from kotha.server.jobs.store import JOB_PLACE, OUT_PLACE, JobStore
from kotha.server.validation import FieldError
from kotha.server.wire import ModelName, WireRequest
from kotha.training.plan.rules import choose_vocabulary

# A command line holds so many.
MOST_TEXTS = 1000
# Bytes, ASCII and special tokens take 364 of a unigram's; with fewer than these there is little room for pieces.
LEAST_VOCABULARY = 512
# A story of the grammar, on the average.
_STORY_BYTES = 2500
PlaceOfModel = Callable[[str], Path]
Id = Annotated[str, Field(pattern="^[0-9a-f]{12}$")]
# What begins as a flag does is no name of a column.
ColumnName = Annotated[str, Field(pattern="^[^-]", max_length=200)]
TwoColumnNames = tuple[ColumnName, ColumnName]
_ENDED = {"failed": Message("failed"), "stopped": Message("was stopped"), "killed": Message("was killed")}


def job_output(store: JobStore, id: str, kind: str, param: str) -> Path:
    """Where what came of a job is, once it is known to be of this kind, and done."""
    if store.uploads.has(id):
        raise RefusedError(
            "{id} is a file; {field} takes the id of a {kind} job, which is made from files",
            400,
            param,
            id=id,
            field=param,
            kind=kind,
        )
    status = store.status(id)
    if status.kind == DAMAGED:
        raise RefusedError("the job {id} cannot be used: {said}", 409, param, id=id, said=status.said)
    if status.kind != kind:
        raise RefusedError(
            "{id} is a {kind} job; {field} takes the id of a {wanted} job",
            400,
            param,
            id=id,
            kind=status.kind,
            field=param,
            wanted=kind,
        )
    if status.state == "running":
        raise RefusedError(
            "the {kind} job {id} is not done yet; wait until GET /api/jobs/{id} says so, or watch its events",
            409,
            param,
            kind=kind,
            id=id,
        )
    if status.state != "done":
        raise RefusedError(
            "the {kind} job {id} {ended}, see GET /api/jobs/{id}; begin it again and use the new id",
            409,
            param,
            kind=kind,
            id=id,
            ended=_ENDED[status.state],
        )
    return store.result(id)


def uploaded_file(store: JobStore, id: str, param: str) -> Path:
    """Where a file is that was brought, once it is known that the id is a file's."""
    if not store.uploads.has(id) and store.has(id):
        raise RefusedError(
            "{id} is a job; {field} takes ids of files, which POST /api/files gives", 400, param, id=id, field=param
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


class _Job(WireRequest):
    name: SeenName = Field("", description="What people call it.")
    tags: Tags | None = Field(None, description="Words to find it by.")

    @model_validator(mode="after")
    def _can_be_said(self) -> Self:
        """No command takes a NUL; ours are marked by it."""
        for name, value in self:
            words = value if isinstance(value, list | tuple) else [value]
            if any(isinstance(word, str) and "\0" in word for word in words):
                raise FieldError("{name} has a letter that cannot be seen, U+0000; leave it out", name=name)
        return self


class DesignedSettings(WireRequest):
    """Sizes of a model and settings of its training, those that differ from a preset's and from the recipe's."""

    n_layers: int | None = Field(None, ge=1, le=128, description="Blocks, one after the other.")
    d_model: int | None = Field(None, ge=1, le=1 << 14, description="Numbers in the vector of a token.")
    n_heads: int | None = Field(None, ge=1, le=256, description="Heads of each attention.")
    context_length: int | None = Field(None, ge=1, le=1 << 20, description="Tokens in sight.")
    batch_size: int | None = Field(None, ge=1, le=1 << 20, description="Sequences in one step.")
    learning_rate: float | None = Field(None, gt=0, le=10, description="The largest, after the warm-up.")
    warmup_steps: int | None = Field(None, ge=0, le=1_000_000_000, description="In which the rate rises.")
    decay_steps: int | None = Field(None, ge=1, le=1_000_000_000, description="The last ones, in which it falls.")


class TokenizerJob(_Job):
    """Train a tokenizer on files that were brought."""

    kind: Literal["tokenizer"] = Field(description="Train a tokenizer.")
    texts: list[Id] = Field(min_length=1, max_length=MOST_TEXTS, description="Files that were brought.")
    tokenizer_kind: Literal["unigram", "bpe", "wordpiece"] = Field("unigram", description="How it cuts.")
    vocab_size: int = Field(8192, ge=LEAST_VOCABULARY, le=200_000, description="Pieces that it shall have.")

    def commands(self, store: JobStore, _: PlaceOfModel) -> list[list[str]]:
        """The command."""
        texts = [str(uploaded_file(store, id, "texts")) for id in self.texts]
        sizes = ["--kind", self.tokenizer_kind, "--vocab-size", str(self.vocab_size)]
        return [["tokenizer", "train", *texts, *sizes, "--out", OUT_PLACE]]


class PrepareJob(_Job):
    """Turn files that were brought into data, with a tokenizer that was trained."""

    kind: Literal["prepare"] = Field(description="Turn texts into data.")
    texts: list[Id] = Field(min_length=1, max_length=MOST_TEXTS, description="Files that were brought.")
    tokenizer: Id = Field(description="The job that trained it.")
    validation: float = Field(0.05, gt=0, lt=1, description="The share of documents that is held out.")

    def commands(self, store: JobStore, _: PlaceOfModel) -> list[list[str]]:
        """The command."""
        texts = [str(uploaded_file(store, id, "texts")) for id in self.texts]
        tokenizer = str(job_output(store, self.tokenizer, "tokenizer", "tokenizer"))
        validation = ["--validation", str(self.validation)]
        return [["prepare", *texts, "--tokenizer", tokenizer, *validation, "--out", OUT_PLACE]]


class TrainJob(_Job):
    """Train a model on data that were prepared, for so many minutes."""

    kind: Literal["train"] = Field(description="Train a model.")
    data: Id = Field(description="The job that prepared them.")
    minutes: float = Field(gt=0, le=24 * 60, description="What it may take; the sizes follow from that.")
    seed: int = Field(0, ge=0, lt=1 << 63, description="The same seed draws the same.")

    def commands(self, store: JobStore, _: PlaceOfModel) -> list[list[str]]:
        """The command."""
        data = str(job_output(store, self.data, "prepare", "data"))
        return [["train", data, "--minutes", str(self.minutes), "--seed", str(self.seed), "--out", OUT_PLACE]]


class LearnJob(_Job):
    """The whole way in one job: texts, or stories of the built-in grammar, to a trained model."""

    kind: Literal["learn"] = Field(description="Go the whole way to a model.")
    texts: list[Id] = Field(
        [], max_length=MOST_TEXTS, description="Files that were brought; none: stories are written."
    )
    stories: int = Field(2000, ge=50, le=100_000, description="How many stories, where no texts are given.")
    minutes: float | None = Field(None, gt=0, le=24 * 60, description="How long the training may take.")
    steps: int | None = Field(None, ge=1, le=1_000_000_000, description="How many steps, in place of minutes.")
    vocab_size: int | None = Field(
        None, ge=LEAST_VOCABULARY, le=200_000, description="Tokens; left out, by the size of the text."
    )
    start: ModelName | None = Field(None, description="A model to go on from, with its tokenizer; left out, none.")
    preset: str | None = Field(
        None, pattern=r"^[a-z0-9][a-z0-9.-]{0,79}$", description="Sizes by a preset's name; left out, what fits."
    )
    sizes: DesignedSettings | None = Field(None, description="Sizes that differ from the preset's.")
    seed: int = Field(0, ge=0, lt=1 << 63, description="Which stories, and which first weights.")

    @model_validator(mode="after")
    def _fits_together(self) -> "LearnJob":
        if self.start is not None and (
            self.preset is not None or self.vocab_size is not None or self.sizes is not None
        ):
            raise FieldError(
                "a model that goes on keeps its sizes and its tokenizer; leave out preset, sizes, vocab_size"
            )
        if self.sizes is not None and self.preset is None:
            raise FieldError("sizes are changes to a preset; name one")
        if self.preset is not None and self.preset not in PRESETS:
            raise FieldError(
                "preset {preset!r} does not exist{nearest}", preset=self.preset, nearest=nearest(self.preset, PRESETS)
            )
        if self.preset is not None and preset(self.preset).family not in ("gpt", "bert"):
            raise FieldError("preset {preset!r} does not learn from texts", preset=self.preset)
        if (self.minutes is None) == (self.steps is None):
            raise FieldError("say how long: minutes or steps, one of them")
        return self

    @property
    def _hides_words(self) -> bool:
        """Whether it is a BERT, whose tokenizer needs marks that others do without."""
        return self.preset is not None and preset(self.preset).family == "bert"

    def commands(self, store: JobStore, place: PlaceOfModel) -> list[list[str]]:
        """Stories, a tokenizer, data, the training."""
        texts, n_bytes, found = [f"{JOB_PLACE}/stories.jsonl"], self.stories * _STORY_BYTES, []
        if self.texts:
            texts_here = [uploaded_file(store, id, "texts") for id in self.texts]
            texts, n_bytes = [str(text) for text in texts_here], sum(text.stat().st_size for text in texts_here)
        else:
            count = ["--documents", str(self.stories), "--seed", str(self.seed)]
            found.append(["corpus", "stories", *count, "--out", texts[0]])
        tokenizer, model = f"{JOB_PLACE}/tokenizer", []
        if self.start is not None:
            tokenizer = str(place(self.start))
            model = ["--from", tokenizer]
        else:
            size = self.vocab_size or choose_vocabulary(n_bytes)
            cuts = ["--kind", "wordpiece"] if self._hides_words else []
            found.append(["tokenizer", "train", *texts, *cuts, "--vocab-size", str(size), "--out", tokenizer])
        if self.preset is not None:
            sizes = {} if self.sizes is None else self.sizes.model_dump(exclude_none=True)
            changes = [f"{name}={value}" for name, value in sizes.items()]
            model = ["--preset", self.preset, *(word for change in changes for word in ("--set", change))]
        found.append(["prepare", *texts, "--tokenizer", tokenizer, "--out", f"{JOB_PLACE}/data"])
        length = ["--minutes", str(self.minutes)] if self.steps is None else ["--steps", str(self.steps)]
        found.append(["train", f"{JOB_PLACE}/data", *model, *length, "--seed", str(self.seed), "--out", OUT_PLACE])
        return found


class _FromTable(_Job):
    table: Id = Field(description="The file with the examples, as jsonl, csv or tsv.")
    broken: Literal["stop", "skip"] = Field("stop", description="What becomes of rows that lack a value.")

    def read(self, store: JobStore) -> str:
        """Where the table is."""
        return str(uploaded_table(store, self.table, "table"))


class AdaptJob(_FromTable):
    """Teach a model that was trained to name classes, or to answer, from a table that was brought."""

    kind: Literal["adapt"] = Field(description="Make a use of a model.")
    use: Literal["classify", "instruct"] = Field(description="What it shall do afterwards.")
    fields: TwoColumnNames | None = Field(
        None, description="Columns of text and label, or of instruction and answer; left out, they are guessed."
    )
    model: str = Field(description="A model of this server, by its name.")
    epochs: float = Field(4.0, gt=0, le=100, description="How often the examples are read.")

    def commands(self, store: JobStore, place: PlaceOfModel) -> list[list[str]]:
        """The command."""
        words = ["adapt", self.use, self.read(store), "--from", str(place(self.model)), "--epochs", str(self.epochs)]
        if self.fields is not None:
            flags = ("--text", "--label") if self.use == "classify" else ("--instruction", "--answer")
            words += [word for pair in zip(flags, self.fields, strict=True) for word in pair]
        return [[*words, "--errors", self.broken, "--out", OUT_PLACE]]


class PairsJob(_FromTable):
    """Make a translator from a table of texts and their translations."""

    kind: Literal["pairs"] = Field(description="Make a translator.")
    fields: TwoColumnNames | None = Field(None, description="Columns of source and target; left out, they are guessed.")
    reverse: bool = Field(False, description="Learn the other direction.")
    start: ModelName | None = Field(None, description="A translator to go on from; left out, none.")
    minutes: float | None = Field(None, gt=0, le=24 * 60, description="How long the training may take.")
    steps: int | None = Field(None, ge=1, le=1_000_000_000, description="How many steps, in place of minutes.")
    seed: int = Field(0, ge=0, lt=1 << 63, description="Which pairs are held out, and which first weights.")

    @model_validator(mode="after")
    def _has_one_length(self) -> "PairsJob":
        if (self.minutes is None) == (self.steps is None):
            raise FieldError("say how long: minutes or steps, one of them")
        return self

    def commands(self, store: JobStore, place: PlaceOfModel) -> list[list[str]]:
        """The command."""
        words = ["train", self.read(store)]
        words += ["--preset", USUAL_PRESET] if self.start is None else ["--from", str(place(self.start))]
        words += ["--minutes", str(self.minutes)] if self.steps is None else ["--steps", str(self.steps)]
        words += [] if self.fields is None else ["--pair", *self.fields]
        words += ["--reverse"] if self.reverse else []
        return [[*words, "--errors", self.broken, "--seed", str(self.seed), "--out", OUT_PLACE]]


class IndexJob(_Job):
    """Make an index of documents that were brought, to ask questions of."""

    kind: Literal["index"] = Field(description="Make an index of documents.")
    texts: list[Id] = Field(min_length=1, max_length=MOST_TEXTS, description="Files that were brought.")
    model: ModelName | None = Field(
        None, description="A model by whose embeddings passages are found too; left out, by their words alone."
    )

    def commands(self, store: JobStore, place: PlaceOfModel) -> list[list[str]]:
        """The command."""
        texts = [str(uploaded_file(store, id, "texts")) for id in self.texts]
        model = [] if self.model is None else ["--model", str(place(self.model))]
        return [["index", *texts, *model, "--errors", "replace", "--out", OUT_PLACE]]


JobRequest = Annotated[
    TokenizerJob | PrepareJob | TrainJob | LearnJob | AdaptJob | PairsJob | IndexJob, Field(discriminator="kind")
]
