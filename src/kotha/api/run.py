"""Training from Python, and a run to look back at."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from kotha.api import Place
from kotha.api.examples import train_on_examples
from kotha.api.model import LanguageModel, load
from kotha.arguments import checked
from kotha.artifacts.run_folder import RunFolder
from kotha.errors import CheckpointError, UsageError
from kotha.generation.plain import write
from kotha.i18n.message import OnRemark, Option
from kotha.model.gpt import GPT
from kotha.report.page import framed
from kotha.storage import bundled
from kotha.storage.images import holds_images
from kotha.storage.status import exists, is_file
from kotha.text.choices import Errors
from kotha.text.shards import DATASET_FILE, Dataset
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.distributed import Ranks, find_disks, goes_on, joined, ranks_here
from kotha.training.initial_weights import Origin
from kotha.training.loop import OnEvent as OnEvent
from kotha.training.reporting.report import write_report
from kotha.training.reporting.tensorboard import TensorBoard
from kotha.training.start import TrainRequest, train_run


class Run:
    """A run folder: what a training left behind, finished or not.

    >>> run = kotha.Run("run")
    >>> run.summary["steps"]
    8
    """

    @checked()
    def __init__(self, path: Place) -> None:
        self.path = Path(path)
        self.folder = RunFolder(self.path)
        self.folder.about()  # refuses what is no run

    def __repr__(self) -> str:
        best = self.folder.best() or {}
        bits, step = best.get("bits_per_byte"), best.get("step")
        reached = "no model yet" if step is None else f"best at step {step:,}"
        return f"Run({str(self.path)!r}: {reached}{'' if bits is None else f', {bits:.3f} bits per byte'})"

    def _repr_html_(self) -> str:
        return framed(self.report.read_text(encoding="utf-8"), repr(self))

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
            raise CheckpointError("{path} has not finished, so it has no summary; see its metrics", path=self.path)
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


@checked()
def train(
    data: Place,
    *,
    out: Place,
    minutes: float | None = None,
    steps: int | None = None,
    preset: str | None = None,
    recipe: str | None = None,
    start: Place | None = None,
    teachers: Sequence[Place] = (),
    pair: tuple[str, str] | None = None,
    reverse: bool = False,
    tokenizer: Tokenizer | Place | None = None,
    validation: Place | None = None,
    test: Place | None = None,
    errors: Errors = "stop",
    resume: bool = False,
    shard: bool = False,
    tensorboard: bool = False,
    prompt: str = "",
    on_event: OnEvent | None = None,
    on_remark: OnRemark | None = None,
    **settings: Any,
) -> Run:
    """Train a model on a data folder, a table of pairs or images, for so many minutes or steps, into a run folder.

    Without a preset, sizes, batch and rates follow from the text and the time. ``start`` is a run, a model folder, a
    Hugging Face folder or ``"box"`` to fine-tune; from teachers, runs or model folders, it learns too (distillation).
    ``recipe`` is course, classic or modern; samples begin with ``prompt``; ``on_event`` and ``tensorboard`` hear
    figures, ``on_remark`` sentences. Processes of torchrun work together, with ``shard`` each keeps a part (FSDP).

    >>> run = kotha.train("data", preset="mini", steps=2, out="short", batch_size=2)
    >>> run.summary["steps"]
    2

    A table of pairs (tsv, csv, jsonl, parquet) makes a translator. ``pair`` names its fields, else guessed; ``reverse``
    learns the other direction; a ``tokenizer`` for both is trained if none is given. Pairs to choose by and to be
    measured on are ``validation`` and ``test``, or held out; ``errors`` is stop or skip.

    >>> run = kotha.train("pairs.tsv", preset="pocket-seq2seq", steps=2, out="translator", d_model=24, vocab_size=600)
    >>> sorted(run.summary)[:3]
    ['baselines', 'best_step', 'bleu']

    Images (a folder with a folder for each class, or an .npz archive of images and labels) make a classifier of them.

    >>> run = kotha.train("shapes.npz", preset="vit-digits", steps=2, out="eyes", image_size=14)
    >>> run.model.config.labels
    ('flat', 'tall')
    """
    changes = settings if steps is None else {**settings, "steps": steps}
    if teachers:  # who goes on may stand elsewhere
        changes["teachers"] = [str(bundled.place(each).absolute()) for each in teachers]
    request = TrainRequest(preset, recipe, minutes, changes=changes)
    of_pairs: Any = {"pair": pair, "reverse": reverse, "tokenizer": tokenizer, "errors": errors}
    of_pairs |= {"validation": validation, "test": test}
    how: Any = {"start": start, "resume": resume, "prompt": prompt, "tensorboard": tensorboard}
    how |= {"on_event": on_event, "on_remark": on_remark}
    return _train(Path(data), RunFolder(Path(out)), request, of_pairs, ranks_here(shard), **how)


def _train(
    data: Path,
    folder: RunFolder,
    request: TrainRequest,
    of_pairs: dict[str, Any],
    ranks: Ranks,
    *,
    start: Place | None,
    resume: bool,
    prompt: str,
    on_event: OnEvent | None,
    on_remark: OnRemark | None,
    tensorboard: bool,
) -> Run:
    """The same, by what the data is: a data folder is learned from by all processes, examples by one."""
    with ExitStack() as stack:
        stack.enter_context(joined(ranks))
        ranks = find_disks(ranks, folder.path)
        again = not resume and goes_on(folder, ranks)
        if start is not None and not again:
            request = replace(request, origin=origin_at(start))
        if tensorboard and ranks.is_first:
            on_event = _both(on_event, stack.enter_context(TensorBoard(folder.path / "tensorboard")))
        how: Any = {"resume": resume or again, "on_event": on_event, "on_remark": on_remark}
        images = not exists(data / DATASET_FILE) and holds_images(data)
        table = is_file(data) and not images
        given = [Option(name) for name, value in of_pairs.items() if value not in (None, False, "stop")]
        if given and not table:
            raise UsageError(
                "{given} applies only to a table of pairs, but {data} is not a file", given=given, data=data
            )
        if images or table:
            if not ranks.alone:
                raise UsageError("training on pairs or images uses a single process; start it without torchrun")
            train_on_examples(data, folder, request, of_pairs if table else None, **how)
        else:
            dataset = Dataset(data)
            train_run(dataset, folder, request, sampler=sampler(dataset, prompt), ranks=ranks, **how)
    if ranks.is_first:
        return Run(folder.path)
    run = Run.__new__(Run)  # for a process that wrote none of it: its files may be on another machine
    run.path, run.folder = folder.path, folder
    return run


def _both(first: OnEvent | None, second: OnEvent) -> OnEvent:
    """Two listeners as one."""

    def hear(event: dict[str, Any]) -> None:
        second(event)
        if first is not None:
            first(event)

    return hear


def origin_at(place: Place) -> Origin:
    """The model of a place, to start from."""
    return Origin(str(place), load(place, device="cpu").bundle)


def sampler(dataset: Dataset, prompt: str = "") -> Callable[[Any], str | None]:
    """What writes a sample: only a GPT can."""
    return lambda model: write(model, dataset.tokenizer, prompt, tokens=60) if isinstance(model, GPT) else None
