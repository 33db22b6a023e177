"""``kotha doctor``: what a training curve shows, and what to try."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from kotha.cli.flags import InLanguage, Json, flag
from kotha.cli.terminal import notes, print_json, results
from kotha.errors import UsageError

_HEADINGS = {"en": "What to try:", "bn": "যা করে দেখতে পারেন:"}


def doctor(
    run: Annotated[Path, flag("A run folder, finished or not.")],
    /,
    *,
    language: InLanguage = "en",
    data: Annotated[Path | None, flag("The run's data folder, where it is not where it was.")] = None,
    ngrams: Annotated[bool, flag("Also count n-grams in the data, to compare with.")] = False,
    as_json: Json = False,
) -> None:
    """Read the loss curve of a run and say in plain words what it shows, with the evidence."""
    from kotha.evaluate.baselines import find_data
    from kotha.evaluate.doctor.advice import reassure
    from kotha.evaluate.doctor.curve import read_curve
    from kotha.evaluate.doctor.diagnosis import diagnose, look_at
    from kotha.runs import RunFolder
    from kotha.text.shards import Dataset

    folder = RunFolder(run)
    config = folder.about()
    place = data or find_data(config, run)
    dataset = None if place is None else Dataset(place, verify=False)
    facts = None if dataset is None else look_at(dataset)
    references = _count(dataset, config) if ngrams else None
    findings = diagnose(config, folder.metrics(), references=references, data=facts)
    if as_json:
        print_json({"findings": [asdict(each) for each in findings], "looked_at_data": facts is not None})
        return
    console = results()
    if not findings:
        curve = read_curve(config, folder.metrics(), references)
        reached = None if curve.best is None else curve.best.loss
        console.print(reassure(reached, curve.references, language), markup=False)
        if not ngrams:
            notes().print("kotha: n-grams, which are harder to beat, were not counted; --ngrams does")
    for finding in findings:
        console.print(finding.words[language], markup=False)
        console.print(_HEADINGS[language], markup=False)
        for each in finding.advice[language]:
            console.print(f"  - {each}", markup=False)
    if facts is None:
        notes().print("kotha: the data folder was not found, so copies and unknown tokens were not looked for")


def _count(dataset: Any, config: dict[str, Any]) -> dict[str, float]:
    """The losses of n-gram models on the run's own data."""
    from kotha.evaluate.baselines import count_baselines
    from kotha.evaluate.held_out import from_dataset
    from kotha.runs import figure

    if dataset is None:
        raise UsageError("--ngrams counts in the data folder, which was not found; name it with --data")
    size = figure(config, "model", "vocab_size")
    vocab_size = dataset.tokenizer.vocab_size if size is None else int(size)
    return count_baselines(dataset, from_dataset(dataset, dataset.tokenizer), vocab_size).references
