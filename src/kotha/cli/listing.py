"""What there is to know of presets, models and runs: ``kotha presets``, ``card``, ``doctor`` and ``compare``."""

from pathlib import Path
from typing import Annotated

from kotha.cli.flags import BOX, Field, InLanguage, Json, Run, flag, page
from kotha.cli.spoken import said, tell
from kotha.cli.terminal import Table, print_json, print_parts, progress, show
from kotha.i18n.message import Message


def presets(*, language: InLanguage = "en", as_json: Json = False) -> None:
    """List the presets that train, plan and inside flow know by name."""
    import kotha

    found = kotha.presets()
    rows = [[each.name, each.family, f"{each.parameters:,}", each.sizes, each.purpose] for each in found]
    header = [Message("name"), Message("family"), Message("parameters"), Message("sizes"), Message("what for")]
    show([{**vars(each), "config": each.config.to_dict()} for each in found], as_json, Table("", header, rows))


def card(run: Run = BOX, /) -> None:
    """Show the card of a model: what it has read, under which licence, how good it is, and what it is not for."""
    from kotha.api.transfer import read_card

    print(read_card(run), end="")


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
    from kotha.api.doctor import doctor as examine

    told = examine(run, data=data, ngrams=ngrams)
    if html is not None:
        told.save(html)
    if as_json:
        print_json(told)
        return
    found = told.found
    if found.healthy is not None:
        print_parts(found.healthy)
        if not ngrams:
            tell(Message("n-grams, which are harder to beat, were not counted; --ngrams does"))
    for finding in found.findings:
        print_parts(finding.words, Message("What to try:"), *(f"  - {said(each)}" for each in finding.advice))
    if not found.looked_at_data:
        tell(Message("the data folder was not found, so copies and unknown tokens were not looked for"))


def compare(
    runs: Annotated[tuple[str, ...], flag("Run folders; with --text also model folders, and box.")],
    /,
    *,
    text: Annotated[str | None, flag("Measure all on this text, instead of what training measured.")] = None,
    field: Field = "text",
    whole: Annotated[bool, flag("Read all of a long text, not its first half megabyte.")] = False,
    device: Annotated[str, flag("cpu, cuda, or auto; for --text.")] = "auto",
    html: Annotated[Path | None, page("Also write the table as a page.")] = None,
    language: InLanguage = "en",
    as_json: Json = False,
) -> None:
    """Compare models across tokenizers: by bits per byte and per character, and by perplexity only where it is fair.

    With --text each row says whether that model has learned from the text. A best one is named where none has, and
    where the difference is more than chance.
    """
    from kotha.api.compare import compare as measure
    from kotha.api.compare import comparison_page, comparison_table, write_page

    with progress() as advance:
        found = measure(runs, text=text, field=field, whole=whole, device=device, on_progress=advance)
    if html is not None:
        write_page(html, comparison_page(found))
    show(found, as_json, comparison_table(found))
    if text is None and len(runs) > 1 and not as_json:
        tell(Message("--text FILE measures all on one text"))
