"""``kotha compare``: several runs in one fair table."""

from pathlib import Path
from typing import Annotated

from kotha.cli.flags import Field, InLanguage, Json, flag, page
from kotha.cli.spoken import tell
from kotha.cli.terminal import print_json, print_table, progress
from kotha.i18n.message import Message


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
    import kotha
    from kotha.evaluation.comparison import comparison_page, comparison_table
    from kotha.storage.atomic import write_page

    with progress() as advance:
        found = kotha.compare(runs, text=text, field=field, whole=whole, device=device, on_progress=advance)
    shown = comparison_table(found)
    if html is not None:
        write_page(html, comparison_page(found))
    if as_json:
        print_json(found.to_dict())
        return
    print_table(shown)
    if text is None and len(runs) > 1:
        tell(Message("--text FILE measures all on one text"))
