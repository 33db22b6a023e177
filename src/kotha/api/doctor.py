"""Diagnose a training curve, from Python and for ``kotha doctor``."""

from pathlib import Path
from typing import Any

from kotha.api import AnyPath
from kotha.arguments import checked
from kotha.artifacts.run_folder import RunFolder, figure, find_data
from kotha.errors import CheckpointError, UsageError
from kotha.evaluation.doctor.diagnosis import Diagnosis, doctor_page, examine
from kotha.evaluation.perplexity import count_baselines
from kotha.i18n.message import Option
from kotha.inside.view import View
from kotha.report.page import page_language
from kotha.storage import bundled
from kotha.storage.status import exists
from kotha.text.held_out import from_dataset
from kotha.text.shards import Dataset


@checked()
def doctor(run: AnyPath, *, data: AnyPath | None = None, ngrams: bool = False) -> View[Diagnosis]:
    """Diagnose the loss curve of a finished or unfinished run, and return the findings with their evidence.

    ``data`` is the path of the data folder, if it has moved. With ``ngrams``, n-gram models of the data serve as a
    baseline.
    """
    folder = RunFolder(Path(run))
    if str(run) == bundled.NAME and not exists(folder.path):  # the bundled model is shipped without its run
        raise CheckpointError("no run in {path}; specify the folder of a training run", path=run)
    config, metrics = folder.about(), folder.metrics()
    path = find_data(config, folder.path) if data is None else Path(data)
    dataset = None if path is None else Dataset(path, verify=False)
    found = examine(config, metrics, dataset, _count(dataset, config) if ngrams else None)
    name, figures = folder.path.resolve().name, found.to_dict()
    plain = {key: figures[key] for key in ("findings", "looked_at_data")}
    return View(name, found, lambda: doctor_page(name, config, metrics, found, page_language()), lambda: plain)


def _count(dataset: Dataset | None, config: dict[str, Any]) -> dict[str, float]:
    """Return the losses of n-gram models on the run's data."""
    if dataset is None:
        raise UsageError(
            "{ngrams} needs the data folder, which was not found; specify its path with {data}",
            ngrams=Option("ngrams"),
            data=Option("data"),
        )
    size = figure(config, "model", "vocab_size")
    vocab_size = dataset.tokenizer.vocab_size if size is None else int(size)
    counted = count_baselines(dataset, from_dataset(dataset, dataset.tokenizer), vocab_size)
    return {name: each["loss_nats"] for name, each in counted.items()}
