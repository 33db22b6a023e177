"""Compare several models by measures that do not depend on the tokenizer."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from kotha.api import AnyPath, listed
from kotha.api.model import load
from kotha.api.progress import displayed
from kotha.arguments import checked
from kotha.artifacts.run_folder import find_data, run_config
from kotha.errors import KothaError, NotFiniteError, UsageError
from kotha.evaluation.comparison import Comparison, Row, reached, row_of_run, row_of_score
from kotha.evaluation.comparison import compare as compare_rows
from kotha.evaluation.comparison import comparison_page as comparison_page
from kotha.evaluation.comparison import comparison_table as comparison_table
from kotha.evaluation.contamination import look_up
from kotha.evaluation.perplexity import Nats, evaluate_text
from kotha.i18n.message import Message, OnProgress, Option
from kotha.storage import bundled
from kotha.storage.atomic import write_page as write_page
from kotha.storage.status import exists
from kotha.text.held_out import read_held_out

# Limit for long texts: about ten seconds on one core for a model of a million parameters.
_MOST_BYTES = 500_000


@displayed
@checked()
def compare(
    runs: Iterable[AnyPath],
    *,
    text: AnyPath | None = None,
    field: str = "text",
    whole: bool = False,
    device: str = "auto",
    names: Sequence[str] | None = None,
    on_progress: OnProgress | None = None,
) -> Comparison:
    """Compare models by bits per byte and per character, and also by perplexity if they share a tokenizer.

    Without a ``text``, run folders are compared by their scores from training. With a ``text``, all models, including
    model folders, are evaluated on it, and each row says whether that model was trained on the text. Only the first
    half megabyte of a longer text is read, unless ``whole`` is set; the comparison reports how many documents were
    read. ``field`` is the name of the field that contains the text. A best model is reported only if no model was
    trained on the text and the difference is statistically significant. ``names`` are the row names (default: the
    folders).

    >>> kotha.compare(["run", "run/best"], text="stories.jsonl").best is None  # both were trained on it
    True
    """
    text_name = None if text is None else str(text)
    rows: list[Row] = []
    nats: list[Nats] = []
    folders = [bundled.model_path(each) for each in listed(runs)]
    row_names = [bundled.title(folder) for folder in folders] if names is None else names
    for folder, name in zip(folders, row_names, strict=True):
        config = run_config(folder)
        if text is None and not config:
            if not exists(folder):
                raise KothaError("{place} not found; specify a run folder", place=folder)
            template = "{place} is not a run folder and has no scores; give a text to evaluate it on: {text}"
            raise UsageError(template, place=folder, text=Option("text", ...))
        row = row_of_run(name, config, reached(folder) if config else {}, find_data(config, folder))
        if text is not None:
            model, tokenizer = load(folder, device).gpt
            held_out = read_held_out(Path(text), tokenizer, field=field, most_bytes=None if whole else _MOST_BYTES)
            text_name = str(held_out.name)
            try:
                found = evaluate_text(model, held_out, on_progress=_with_model_name(on_progress, folder))
            except NotFiniteError as error:
                raise NotFiniteError(name) from error
            found = replace(found, seen=look_up(held_out, folder))
            nats.append(found.nats)
            row = row_of_score(row if config else row_of_run(name, {"model": model.config.to_dict()}, {}), found)
        rows.append(row)
    return compare_rows(rows, nats or None, text_name)


def _with_model_name(on_progress: OnProgress | None, folder: Path) -> OnProgress | None:
    """Add the model's name to the stages reported to a progress callback."""
    name = Path(bundled.title(folder)).name
    return on_progress and (
        lambda stage, done, total: on_progress(Message("{stage} {name}", stage=stage, name=name), done, total)
    )
