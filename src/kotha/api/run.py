"""Train a model from Python, and read a run folder."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from kotha.api import AnyPath
from kotha.api.examples import train_on_examples
from kotha.api.model import LanguageModel, load
from kotha.api.options import setting_names
from kotha.api.progress import displayed
from kotha.arguments import checked
from kotha.artifacts.run_folder import RunFolder
from kotha.errors import CheckpointError, KothaError, UsageError
from kotha.generation.engine import Engine
from kotha.generation.plain import write
from kotha.generation.request import Request
from kotha.i18n.message import OnRemark, Option
from kotha.model.gpt import GPT
from kotha.report.page import framed
from kotha.storage import bundled
from kotha.storage.images import holds_images
from kotha.storage.status import exists, is_file
from kotha.text.choices import Errors
from kotha.text.shards import DATASET_FILE, Dataset
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.distributed import Ranks, choose_writers, is_restart, joined, ranks_here
from kotha.training.initial_weights import Origin
from kotha.training.loop import OnEvent as OnEvent
from kotha.training.plan.stages import Quality
from kotha.training.reporting.report import write_report
from kotha.training.reporting.tensorboard import TensorBoard
from kotha.training.request import TrainRequest
from kotha.training.train_run import train_run


class Run:
    """A run folder, whose training may be unfinished.

    >>> run = kotha.Run("run")
    >>> run.summary["steps"]
    8
    """

    @checked()
    def __init__(self, path: AnyPath) -> None:
        self.path = Path(path)
        self.folder = RunFolder(self.path)
        self.folder.about()  # raises an error if this is not a run folder

    def __repr__(self) -> str:
        try:
            best = self.folder.best() or {}
        except KothaError as error:
            return f"Run({str(self.path)!r}: {error})"
        bits, step = best.get("bits_per_byte"), best.get("step")
        status = "no model yet" if step is None else f"best at step {step:,}"
        return f"Run({str(self.path)!r}: {status}{'' if bits is None else f', {bits:.3f} bits per byte'})"

    def _repr_html_(self) -> str:
        return framed(self.report.read_text(encoding="utf-8"), repr(self))

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def summary(self) -> dict[str, Any]:
        """The run's final results.

        >>> sorted(run.summary)[:3]
        ['best_step', 'bits_per_byte', 'bits_per_character']
        """
        found = self.folder.summary()
        if found is None:
            raise CheckpointError("{path} has not finished, so it has no summary; see its metrics", path=self.path)
        return found

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The logged rows: steps, evaluations and samples.

        >>> run.metrics[0]["step"]
        1
        """
        return self.folder.metrics()

    @property
    def report(self) -> Path:
        """The path of the run's report page, which is regenerated on each access.

        >>> run.report
        PosixPath('run/report.html')
        """
        return write_report(self.path)

    @cached_property
    def model(self) -> LanguageModel:
        """The best model saved in the run.

        >>> run.model.config.family
        'gpt'
        """
        return load(self.path)


@displayed
@checked(settings=setting_names)
def train(
    data: AnyPath,
    *,
    out: AnyPath,
    minutes: float | None = None,
    steps: int | None = None,
    preset: str | None = None,
    recipe: str | None = None,
    quality: Quality = "best",
    start: AnyPath | None = None,
    teachers: Sequence[AnyPath] = (),
    pair: tuple[str, str] | None = None,
    reverse: bool = False,
    tokenizer: Tokenizer | AnyPath | None = None,
    validation: AnyPath | None = None,
    test: AnyPath | None = None,
    errors: Errors = "stop",
    resume: bool = False,
    shard: bool = False,
    tensorboard: bool = False,
    prompt: str = "",
    on_event: OnEvent | None = None,
    on_remark: OnRemark | None = None,
    **settings: Any,
) -> Run:
    """Train a model on a data folder, a table of pairs or images for ``minutes`` or ``steps``; return its run folder.

    Without a preset, model sizes, batch size and learning rates are chosen to fit the text and the time; with
    ``quality="best"`` and a long time budget, teachers are trained too. ``start`` is a run, a model folder, a Hugging
    Face folder or ``"box"`` to fine-tune. ``teachers`` are runs or model folders to distil from. ``recipe`` is course,
    classic or modern; generated samples start with ``prompt``. ``on_event`` and ``tensorboard`` receive metrics,
    ``on_remark`` messages. Under torchrun, all processes train together; ``shard`` shards the model among them (FSDP).

    >>> run = kotha.train("data", preset="mini", steps=2, out="short", batch_size=2)
    >>> run.summary["steps"]
    2

    Given a table of pairs (tsv, csv, jsonl, parquet), a translator is trained. ``pair`` names the fields (default:
    guessed), and ``reverse`` swaps source and target. ``tokenizer`` is used for both languages (default: a new one).
    ``validation`` and ``test`` are files of pairs (default: held-out pairs from the table). ``errors`` is stop or skip.

    >>> run = kotha.train("pairs.tsv", preset="pocket-seq2seq", steps=2, out="translator", d_model=24, vocab_size=600)
    >>> sorted(run.summary)[:3]
    ['baselines', 'best_step', 'bleu']

    Given images (one folder per class, or an .npz archive of images and labels), a classifier is trained.

    >>> run = kotha.train("shapes.npz", preset="vit-digits", steps=2, out="eyes", image_size=14)
    >>> run.model.config.labels
    ('flat', 'tall')
    """
    changes = settings if steps is None else {**settings, "steps": steps}
    if teachers:  # absolute, because the run may be resumed from another directory
        changes["teachers"] = [str(bundled.model_path(each).absolute()) for each in teachers]
    request = TrainRequest(preset, recipe, minutes, changes=changes, quality=quality)
    of_pairs: Any = {"pair": pair, "reverse": reverse, "tokenizer": tokenizer, "errors": errors}
    of_pairs |= {"validation": validation, "test": test}
    options: Any = {"start": start, "resume": resume, "prompt": prompt, "tensorboard": tensorboard}
    options |= {"on_event": on_event, "on_remark": on_remark}
    return _train(Path(data), RunFolder(Path(out)), request, of_pairs, ranks_here(shard), **options)


def _train(
    data: Path,
    folder: RunFolder,
    request: TrainRequest,
    of_pairs: dict[str, Any],
    ranks: Ranks,
    *,
    start: AnyPath | None,
    resume: bool,
    prompt: str,
    on_event: OnEvent | None,
    on_remark: OnRemark | None,
    tensorboard: bool,
) -> Run:
    """Train on a data folder in all processes, or on examples in a single process."""
    with ExitStack() as stack:
        stack.enter_context(joined(ranks))
        ranks = choose_writers(ranks, folder.path)
        again = not resume and is_restart(folder, ranks)
        if start is not None and not again:
            request = replace(request, origin=origin_at(start))
        if tensorboard and ranks.is_first:
            on_event = _both(on_event, stack.enter_context(TensorBoard(folder.path / "tensorboard")))
        on_remark = on_remark if ranks.is_first else None
        options: Any = {"resume": resume or again, "on_event": on_event, "on_remark": on_remark}
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
            train_on_examples(data, folder, request, of_pairs if table else None, **options)
        else:
            dataset = Dataset(data)
            train_run(dataset, folder, request, sampler=sampler(dataset, prompt), ranks=ranks, **options)
    if ranks.is_first:
        return Run(folder.path)
    run = Run.__new__(Run)  # other processes write no files, and the folder may be on another machine
    run.path, run.folder = folder.path, folder
    return run


def _both(first: OnEvent | None, second: OnEvent) -> OnEvent:
    """Combine two listeners into one."""

    def notify(event: dict[str, Any]) -> None:
        second(event)
        if first is not None:
            first(event)

    return notify


def origin_at(path: AnyPath) -> Origin:
    """Load a model to start training from."""
    return Origin(str(path), load(path, device="cpu").bundle)


def sampler(dataset: Dataset, prompt: str = "") -> Callable[[Any], str | None]:
    """Return a function that generates a sample with a GPT, or returns None for other models."""

    def sample(model: Any) -> str | None:
        if not isinstance(model, GPT):
            return None
        if model.tokens.weight.is_cuda:  # the engine would be compiled for each sample
            return write(model, dataset.tokenizer, prompt, tokens=60)
        [result] = Engine(model, dataset.tokenizer, max_batch=1).generate([Request(prompt=prompt, tokens=60)])
        return prompt + result.text

    return sample
