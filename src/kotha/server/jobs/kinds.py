"""The kinds of jobs and their commands. Requests refer to files and models by id, never by path."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from kotha.errors import nearest
from kotha.finetune.pairs import USUAL_PRESET
from kotha.model.presets import PRESETS
from kotha.server.errors import RefusedError
from kotha.server.jobs.store import JOB_PLACE, OUT_PLACE, JobStore
from kotha.server.json_requests import FieldError, Id, ModelName, SeenName, Tags, WireRequest
from kotha.training.plan.rules import choose_vocabulary

# Bounded by the length of a command line.
MOST_TEXTS = 1000
# Bytes, ASCII and special tokens take 364 entries in a unigram vocabulary; a smaller one would have few pieces.
LEAST_VOCABULARY = 512
# Presets that train on plain text.
_FAMILIES = {name: config.family for name, config in PRESETS.items() if config.family in ("gpt", "bert")}
# Mean size of a generated story.
_STORY_BYTES = 2500
FindModel = Callable[[str], Path]
# A leading dash would be parsed as a flag, and NUL marks placeholders in commands.
ColumnName = Annotated[str, Field(pattern=r"^[^-\x00][^\x00]*$", max_length=200)]
TwoColumnNames = tuple[ColumnName, ColumnName]


def uploaded_table(store: JobStore, id: str, param: str) -> Path:
    """Return the path of an uploaded table; raises RefusedError for a txt file, because it has no columns."""
    table = store.uploads.path(id)
    if table.suffix == ".txt":
        raise RefusedError(
            "{id} was uploaded as txt, which has no columns; upload the table as jsonl, csv or tsv", param=param, id=id
        )
    return table


def _flags(**given: object) -> list[str]:
    """Return command-line options; an option whose value is None is omitted.

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

    def flags(self, *names: str, **more: object) -> list[str]:
        """Return the options for the last command, taken from some of the fields and from ``more``."""
        return _flags(**{name: getattr(self, name) for name in names}, **more, out=OUT_PLACE)


class _FromTexts(_Job):
    texts: list[Id] = Field(min_length=1, max_length=MOST_TEXTS)

    def read(self, store: JobStore) -> list[str]:
        """Return the paths of the texts."""
        return [str(store.uploads.path(id)) for id in self.texts]


class ModelSizes(WireRequest):
    """The sizes of a model; bounded by the largest published models, because planning builds each layer."""

    n_layers: int | None = Field(None, ge=1, le=128)
    d_model: int | None = Field(None, ge=1, le=1 << 14)
    n_heads: int | None = Field(None, ge=1, le=256)
    context_length: int | None = Field(None, ge=1, le=1 << 20)
    batch_size: int | None = Field(None, ge=1, le=1 << 20)


class DesignedSettings(ModelSizes):
    """Changes to a preset's sizes and to the training settings."""

    learning_rate: float | None = Field(None, gt=0, le=10)
    warmup_steps: int | None = Field(None, ge=0, le=1_000_000_000)
    decay_steps: int | None = Field(None, ge=1, le=1_000_000_000)


class _TrainingJob(_Job):
    start: ModelName | None = None
    minutes: float | None = Field(None, gt=0, le=24 * 60)
    steps: int | None = Field(None, ge=1, le=1_000_000_000)
    seed: int = Field(0, ge=0, lt=1 << 63)

    @model_validator(mode="after")
    def _has_one_length(self) -> Self:
        if (self.minutes is None) == (self.steps is None):
            raise FieldError("give the length of the training run in either minutes or steps")
        return self


class LearnJob(_TrainingJob, _FromTexts):
    """Train a tokenizer and a model on texts (default: generated stories) in a single job."""

    kind: Literal["learn"]
    texts: list[Id] = Field([], max_length=MOST_TEXTS)
    stories: int = Field(2000, ge=50, le=100_000)
    vocab_size: int | None = Field(None, ge=LEAST_VOCABULARY, le=200_000)
    preset: str | None = Field(None, max_length=80)
    sizes: DesignedSettings | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.start is not None and (self.preset, self.vocab_size, self.sizes) != (None, None, None):
            raise FieldError(
                "a model given as `start` keeps its sizes and tokenizer; omit preset, sizes and vocab_size"
            )
        if self.preset is None and self.sizes is not None:
            raise FieldError("sizes are changes to a preset; specify the preset")
        if self.preset not in (None, *_FAMILIES):
            close = nearest(self.preset or "", _FAMILIES)
            unknown = "{preset!r} is not a preset for plain text{nearest}"
            raise FieldError(unknown, preset=self.preset, nearest=close)
        return self

    def commands(self, store: JobStore, find_model: FindModel) -> list[list[str]]:
        """Return the commands to generate stories, train a tokenizer, prepare data and train."""
        texts, n_bytes, found = self.read(store), self.stories * _STORY_BYTES, []
        if texts:
            n_bytes = sum(Path(text).stat().st_size for text in texts)
        else:
            texts = [f"{JOB_PLACE}/stories.jsonl"]
            found.append(["corpus", "stories", *_flags(documents=self.stories, seed=self.seed, out=texts[0])])
        tokenizer, data, sizes = f"{JOB_PLACE}/tokenizer", f"{JOB_PLACE}/data", []
        if self.start is not None:
            tokenizer = str(find_model(self.start))
            sizes = ["--from", tokenizer]
        else:
            # A BERT model needs a tokenizer with a mask token.
            kind = "wordpiece" if _FAMILIES.get(self.preset or "") == "bert" else None
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
        """Return the path of the table."""
        return str(uploaded_table(store, self.table, "table"))


class FinetuneJob(_FromTable):
    """Fine-tune a model on an uploaded table, to classify text or to follow instructions."""

    kind: Literal["finetune"]
    use: Literal["classify", "instruct"]
    model: str
    epochs: float = Field(4.0, gt=0, le=100)

    def commands(self, store: JobStore, find_model: FindModel) -> list[list[str]]:
        """Return the command."""
        columns = ("text", "label") if self.use == "classify" else ("instruction", "answer")
        named = dict(zip(columns, self.fields or (None, None), strict=True))
        how = self.flags("epochs", **named, errors=self.broken)
        return [["finetune", self.use, self.read(store), "--from", str(find_model(self.model)), *how]]


class PairsJob(_FromTable, _TrainingJob):
    """Train a translator on an uploaded table of texts and translations."""

    kind: Literal["pairs"]
    reverse: bool = False

    def commands(self, store: JobStore, find_model: FindModel) -> list[list[str]]:
        """Return the command."""
        model = ["--preset", USUAL_PRESET] if self.start is None else ["--from", str(find_model(self.start))]
        how = self.flags("minutes", "steps", pair=self.fields, reverse=self.reverse, errors=self.broken, seed=self.seed)
        return [["train", self.read(store), *model, *how]]


class IndexJob(_FromTexts):
    """Build a search index from uploaded documents."""

    kind: Literal["index"]
    model: ModelName | None = None

    def commands(self, store: JobStore, find_model: FindModel) -> list[list[str]]:
        """Return the command."""
        model = None if self.model is None else find_model(self.model)
        return [["index", *self.read(store), *self.flags(model=model, errors="skip")]]


JobRequest = Annotated[LearnJob | FinetuneJob | PairsJob | IndexJob, Field(discriminator="kind")]
