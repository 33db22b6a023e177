"""Several models side by side, fairly."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from kotha.api import Place, listed
from kotha.api.model import load
from kotha.arguments import checked
from kotha.artifacts.run_folder import find_data, run_config
from kotha.errors import UsageError
from kotha.evaluation.comparison import Comparison, Row, reached, row_of_run, row_of_score
from kotha.evaluation.comparison import compare as compare_rows
from kotha.evaluation.comparison import comparison_page as comparison_page
from kotha.evaluation.comparison import comparison_table as comparison_table
from kotha.evaluation.contamination import look_up
from kotha.evaluation.perplexity import Nats, evaluate_text
from kotha.i18n.message import Message, OnProgress
from kotha.storage import bundled
from kotha.storage.atomic import write_page as write_page
from kotha.text.held_out import read_held_out

# Of a longer text so many bytes are read: some ten seconds on one core for a model of a million parameters.
_MOST_BYTES = 500_000


@checked()
def compare(
    runs: Iterable[Place],
    *,
    text: Place | None = None,
    field: str = "text",
    whole: bool = False,
    device: str = "auto",
    names: Sequence[str] | None = None,
    on_progress: OnProgress | None = None,
) -> Comparison:
    """Set models side by side: by bits per byte and per character, and by perplexity only where it is fair.

    Without a ``text``, run folders are compared by what their training measured. With one, all are measured on it,
    model folders too, and each row says whether that model has learned from it. Of a text of more than half a megabyte
    the first documents are read, and the comparison says how many, unless the ``whole`` of it is asked for; of records,
    ``field`` holds the text. A best one is named only where none has learned from it, and where the difference is more
    than chance. They are called by their folders, unless ``names`` say otherwise.

    >>> kotha.compare(["run", "run/best"], text="stories.jsonl").best is None  # they learned from it
    True
    """
    measured = None if text is None else str(text)
    rows: list[Row] = []
    nats: list[Nats] = []
    places = [bundled.place(each) for each in listed(runs)]
    called = [bundled.title(place) for place in places] if names is None else names
    for place, name in zip(places, called, strict=True):
        config = run_config(place)
        if text is None and not config:
            raise UsageError("{place} is not a run folder with its own scores; give a text to evaluate on", place=place)
        row = row_of_run(name, config, reached(place) if config else {}, find_data(config, place))
        if text is not None:
            model, tokenizer = load(place, device).gpt
            held_out = read_held_out(Path(text), tokenizer, field=field, most_bytes=None if whole else _MOST_BYTES)
            measured = str(held_out.name)
            found = evaluate_text(model, held_out, on_progress=_named(on_progress, place))
            found = replace(found, seen=look_up(held_out, place))
            nats.append(found.nats)
            row = row_of_score(row if config else row_of_run(name, {"model": model.config.to_dict()}, {}), found)
        rows.append(row)
    return compare_rows(rows, nats or None, measured)


def _named(on_progress: OnProgress | None, place: Path) -> OnProgress | None:
    """The same listener, told which model is at work."""
    name = Path(bundled.title(place)).name
    return on_progress and (
        lambda stage, done, total: on_progress(Message("{stage} {name}", stage=stage, name=name), done, total)
    )
