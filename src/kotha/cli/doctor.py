"""``kotha doctor``: what a training curve shows, and what to try."""

from pathlib import Path
from typing import Annotated, Any

from kotha.cli.flags import InLanguage, Json, flag, page
from kotha.cli.spoken import said, tell
from kotha.cli.terminal import print_json, results
from kotha.errors import UsageError
from kotha.i18n.message import Message


def doctor(
    run: Annotated[Path, flag("A run folder, finished or not.")],
    /,
    *,
    language: InLanguage = "en",
    data: Annotated[Path | None, flag("The run's data folder, where it is not where it was.")] = None,
    ngrams: Annotated[bool, flag("Also count n-grams in the data, to compare with.")] = False,
    html: Annotated[Path | None, page("Also write the curve and what it shows as a page.")] = None,
    as_json: Json = False,
) -> None:
    """Read the loss curve of a run and say in plain words what it shows, with the evidence."""
    from kotha.artifacts.run_folder import RunFolder, find_data
    from kotha.evaluation.doctor.diagnosis import doctor_page, examine
    from kotha.i18n.catalogue import translate
    from kotha.storage.atomic import write_page
    from kotha.text.shards import Dataset

    folder = RunFolder(run)
    config, metrics = folder.about(), folder.metrics()
    place = data or find_data(config, run)
    dataset = None if place is None else Dataset(place, verify=False)
    found = examine(config, metrics, dataset, _count(dataset, config) if ngrams else None)
    if html is not None:
        write_page(html, doctor_page(run.resolve().name, config, metrics, found, language))
    if as_json:
        told = found.to_dict()
        print_json({name: told[name] for name in ("findings", "looked_at_data")})
        return
    console = results()
    if found.healthy is not None:
        console.print(translate(found.healthy, language), markup=False)
        if not ngrams:
            tell(Message("n-grams, which are harder to beat, were not counted; --ngrams does"))
    for finding in found.findings:
        console.print(translate(finding.words, language), markup=False)
        console.print(said(Message("What to try:")), markup=False)
        for each in finding.advice:
            console.print(f"  - {translate(each, language)}", markup=False)
    if not found.looked_at_data:
        tell(Message("the data folder was not found, so copies and unknown tokens were not looked for"))


def _count(dataset: Any, config: dict[str, Any]) -> dict[str, float]:
    """The losses of n-gram models on the run's own data."""
    from kotha.artifacts.run_folder import figure
    from kotha.evaluation.baselines import count_baselines
    from kotha.text.held_out import from_dataset

    if dataset is None:
        raise UsageError("--ngrams counts in the data folder, which was not found; name it with --data")
    size = figure(config, "model", "vocab_size")
    vocab_size = dataset.tokenizer.vocab_size if size is None else int(size)
    return count_baselines(dataset, from_dataset(dataset, dataset.tokenizer), vocab_size).references
