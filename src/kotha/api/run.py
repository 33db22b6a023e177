"""Training from Python, and a run to look back at."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from kotha.api.data import Place
from kotha.api.model import LanguageModel, load
from kotha.errors import CheckpointError, UsageError
from kotha.generate.plain import write
from kotha.model.config import TextConfig
from kotha.model.gpt import GPT
from kotha.model.presets import preset as model_of
from kotha.runs import RunFolder
from kotha.text.shards import Dataset
from kotha.train.plan.minutes import settings_for_minutes
from kotha.train.recipes import recipe as settings_of
from kotha.train.show.report import write_report
from kotha.train.start import resume_run, start_run

OnEvent = Callable[[dict[str, Any]], None]


class Run:
    """A run folder: what a training left behind, finished or not.

    >>> run = kotha.Run("run")
    >>> run.summary["steps"]
    8
    """

    def __init__(self, path: Place) -> None:
        self.path = Path(path)
        self.folder = RunFolder(self.path)
        self.folder.about()  # refuses what is no run

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def summary(self) -> dict[str, Any]:
        """The end of the run in a few numbers.

        >>> sorted(run.summary)[:3]
        ['best_step', 'bits_per_byte', 'bits_per_character']
        """
        found = self.folder.summary()
        if found is None:
            raise CheckpointError(f"{self.path} has not come to an end, so it has no summary; see its metrics")
        return found

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """What was logged, line by line: steps, evaluations, samples.

        >>> run.metrics[0]["step"]
        1
        """
        return self.folder.metrics()

    @property
    def report(self) -> Path:
        """The run on one page, written anew from the folder's files.

        >>> run.report
        PosixPath('run/report.html')
        """
        return write_report(self.path)

    @cached_property
    def model(self) -> LanguageModel:
        """The best model of the run.

        >>> run.model.config.family
        'gpt'
        """
        return load(self.path)


def train(
    data: Place,
    *,
    out: Place,
    minutes: float | None = None,
    steps: int | None = None,
    preset: str | None = None,
    resume: bool = False,
    on_event: OnEvent | None = None,
    **settings: Any,
) -> Run:
    """Train a model on a data folder, for so many minutes or steps, into a run folder.

    >>> run = kotha.train("data", preset="mini", steps=2, out="short", batch_size=2)
    >>> run.summary["steps"]
    2
    """
    dataset, folder = Dataset(Path(data)), RunFolder(Path(out))
    if minutes is not None and (steps is not None or resume):
        raise UsageError("minutes is for a new run, and takes the place of steps; give one of them")
    given = {**settings, **({} if steps is None else {"steps": steps})}
    about: dict[str, Any] = {"on_event": on_event, "sampler": _sampler(dataset)}
    if resume:
        training = resume_run(dataset, folder, given, **about)
    else:
        model, chosen = model_of(preset or "pocket"), settings_of("modern", **given)
        if isinstance(model, TextConfig):
            model = model.replace(vocab_size=dataset.tokenizer.vocab_size)
        if minutes is not None:
            chosen = settings_for_minutes(model, chosen, minutes, fixed=given)
        training = start_run(model, chosen, dataset, folder, timed=True, **about)
    training.run()
    write_report(folder.path)
    return Run(folder.path)


def _sampler(dataset: Dataset) -> Callable[[Any], str | None]:
    """What writes a sample: only a GPT can."""
    return lambda model: write(model, dataset.tokenizer, "", tokens=60) if isinstance(model, GPT) else None
