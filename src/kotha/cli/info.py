"""Information about presets, models and runs: ``kotha presets``, ``card``, ``doctor`` and ``compare``."""

from pathlib import Path

from kotha.cli.language import translate
from kotha.cli.options import BOX, Device, Field, Page, Run
from kotha.cli.terminal import Output, Table, progress
from kotha.i18n.message import Message, Text


def presets() -> Output:
    """List the presets with their sizes and purposes.

    A preset is a complete model configuration, for --preset of other commands.

    Example: `kotha train data --preset pocket --out run`
    """
    import kotha

    found = kotha.presets()
    rows = [[each.name, each.family, f"{each.parameters:,}", each.sizes, each.purpose] for each in found]
    header = [Message("name"), Message("family"), Message("parameters"), Message("sizes"), Message("purpose")]
    return Output([{**vars(each), "config": each.config.to_dict()} for each in found], Table("", header, rows))


def card(run: Run = BOX, /) -> None:
    """Show a model card: training data, licence, scores and limitations."""
    from kotha.api.conversion import read_card

    print(read_card(run), end="")


def doctor(run: Path, /, *, data: Path | None = None, ngrams: bool = False, html: Page = None) -> Output:
    """Explain in plain words what a run's loss curve shows, with evidence, and suggest what to try.

    The command also looks for duplicates and unknown tokens in the run's data folder.

    Example: `kotha doctor run --html doctor.html`

    Args:
        run: Run folder, finished or not.
        data: Data folder of the run, if it has moved.
        ngrams: Also count n-grams in the data as a baseline.
        html: Output file for the curve and the findings as an HTML page.
    """
    from kotha.api.doctor import doctor as examine

    examination = examine(run, data=data, ngrams=ngrams)
    found, parts, remarks = examination.found, list[Text](), []
    if found.healthy is not None:
        parts.append(found.healthy)
        if not found.curve.has_ngrams:
            remarks.append(Message("n-grams, a stronger baseline, were not counted; use --ngrams"))
    for finding in found.findings:
        parts += [finding.words, Message("What to try:"), *(f"  - {translate(each)}" for each in finding.advice)]
    if not found.looked_at_data:
        remarks.append(Message("the data folder was not found, so duplicates and unknown tokens were not checked"))
    return Output(examination, *parts, remarks=remarks, page=html)


def compare(
    runs: tuple[str, ...],
    /,
    *,
    text: str | None = None,
    field: Field = "text",
    whole: bool = False,
    device: Device = "auto",
    html: Page = None,
) -> Output:
    """Compare models that may have different tokenizers, by bits per byte and per character.

    Perplexity depends on the tokenizer, so it is shown only if all models share one. With --text, all models are
    evaluated on that text, and each row says whether the model was trained on it. A best model is reported only if no
    model was trained on the text and the difference is statistically significant.

    Example: `kotha compare run other-run --text stories.jsonl`

    Args:
        runs: Run folders; with --text also model folders and box.
        text: Text to evaluate all models on, instead of comparing their training scores.
        whole: Read the whole text, not only its first half megabyte.
        html: Output file for the table as an HTML page.
    """
    from kotha.api.compare import compare as measure
    from kotha.api.compare import comparison_page, comparison_table, write_page

    with progress() as advance:
        found = measure(runs, text=text, field=field, whole=whole, device=device, on_progress=advance)
    if html is not None:
        write_page(html, comparison_page(found))
    alone = text is None and len(runs) > 1
    return Output(
        found,
        comparison_table(found),
        remarks=[Message("--text FILE evaluates all models on the same text")] if alone else (),
    )
