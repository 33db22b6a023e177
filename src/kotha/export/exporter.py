"""The one way out, whatever the format: what is asked for is checked, written, and compared in the other program.

A format is an ``Exporter``: a few facts, and a function that writes a model and compares it (see ``parity.py``). What
is the same for all of them is here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from kotha.artifacts.model_folder import Bundle
from kotha.errors import KothaError, UsageError, nearest
from kotha.export.card import UNKNOWN, About
from kotha.export.parity import ParityReport, built_in_lines
from kotha.i18n.message import Option, Text
from kotha.model.config import BERTConfig, ClassifierConfig, GPTConfig, ModelConfig
from kotha.storage.destinations import check_file_place
from kotha.storage.status import exists
from kotha.text.tokenizer.prompt import framed, start_of_document
from kotha.text.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class ExportSettings:
    """What an export can be asked for, whatever its format."""

    weights: str | None = None
    """Their type there: hf float32, bfloat16 or float16, gguf f32, f16, q8_0 or q4_0, web int8; None: as usual."""
    license: str | None = None  # under which licence the model is given away; None: it is not known
    run: Path | None = None  # the run folder that the model card tells of
    lines: Sequence[str] | None = None  # what is compared on; None: awkward lines, and some of the built-in stories
    overwrite: bool = False  # replace what was exported there before


USUAL = ExportSettings()


@dataclass(frozen=True)
class ExportJob:
    """One export, once it is known that it can be done."""

    bundle: Bundle
    path: Path
    weights: str
    settings: ExportSettings

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's; asked for by formats that need one."""
        assert self.bundle.tokenizer is not None, "a format that needs a tokenizer says so"
        return self.bundle.tokenizer

    @cached_property
    def lines(self) -> Sequence[str]:
        """What is compared on."""
        return built_in_lines() if self.settings.lines is None else self.settings.lines

    @cached_property
    def about(self) -> About:
        """What the run tells of the model."""
        return About() if self.settings.run is None else About.of(self.settings.run)

    @property
    def license(self) -> str | None:
        """The licence that was named, or the one that the model came with."""
        return self.settings.license or (None if self.about.license == UNKNOWN else self.about.license)


@dataclass(frozen=True)
class Exporter:
    """A format that models are exported to."""

    opens: Callable[[ModelConfig], Text]  # as what a config opens there, or else an UnsupportedError
    export: Callable[[ExportJob], ParityReport]  # writes it, whole or not at all, and compares it there
    weights: tuple[str, ...]  # types of weights, the usual one first
    file_name: str | None = None  # of the one file that holds everything; None: it is a folder
    endings: tuple[str, ...] = ()
    needs_tokenizer: Text | None = None  # what needs one

    def __call__(self, bundle: Bundle, out: Path, settings: ExportSettings = USUAL) -> ParityReport:
        """Write a model at ``out`` (or one file into it) and compare it there.

        A report that has not ``passed`` is about something that is written all the same.
        """
        weights = settings.weights or self.weights[0]
        if weights not in self.weights:
            raise UsageError(
                "weights={weights!r} is no type of weights there{nearest}",
                weights=weights,
                nearest=nearest(weights, self.weights),
            )
        self.opens(bundle.config)
        if bundle.tokenizer is None and self.needs_tokenizer is not None:
            raise KothaError(
                "this model folder has no tokenizer, and {what} needs one; train or save it with one",
                what=self.needs_tokenizer,
            )
        path = out
        if self.file_name is not None:
            path = out if out.suffix in self.endings else out / self.file_name.format(weights=weights)
            if exists(check_file_place(path)) and not settings.overwrite:
                raise KothaError(
                    "{path} exists; choose another place, or replace it with {overwrite}",
                    path=path,
                    overwrite=Option("overwrite", True),
                )
        report = self.export(ExportJob(bundle, path, weights, settings))
        report.weights = weights
        return report


def with_marks_of(tokenizer: Tokenizer, config: ModelConfig) -> Tokenizer:
    """The tokenizer with the marks that texts stood between in training, so that it puts them there by itself."""
    before, after = list[int](), list[int]()
    if isinstance(config, ClassifierConfig):
        *before, end = (tokenizer.special[role] for role in config.marks)
        after = [end]
    elif isinstance(config, BERTConfig) and {"cls", "sep"} <= tokenizer.special.keys():
        before, after = [tokenizer.special["cls"]], [tokenizer.special["sep"]]
    elif isinstance(config, GPTConfig):
        start = start_of_document(tokenizer)
        before = [] if start is None else [start]
    else:
        return tokenizer
    does_so_already = tokenizer.backend.encode("").ids == [*before, *after]
    return tokenizer if does_so_already else framed(tokenizer, before, after)
