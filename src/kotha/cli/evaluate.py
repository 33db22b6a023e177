"""``kotha evaluate``: how well a model foretells a text, beside what counting reaches."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from kotha.cli.terminal import Problems, notes, print_json, print_table, progress, results, table
from kotha.errors import UsageError
from kotha.text.corpus.problems import Errors

if TYPE_CHECKING:
    from kotha.api.model import LanguageModel

Run = Annotated[Path, Parameter(help="A run folder (its best model), or a model folder.")]


def evaluate(
    run: Run,
    path: Annotated[str, Parameter(help="A text: a file, folder or data folder; or a harness task (.yaml).")],
    /,
    *,
    context: Annotated[int | None, Parameter(help="Tokens in a window; left out: the model's context.")] = None,
    stride: Annotated[int | None, Parameter(help="Tokens a window moves on by; left out: half the context.")] = None,
    baselines: Annotated[
        str, Parameter(help="Data folder to count n-grams in, or none; auto: the one the run was trained on.")
    ] = "auto",
    split: Annotated[str, Parameter(help="Split of a data folder to measure on.")] = "validation",
    field: Annotated[str, Parameter(help="Field or column that holds the text.")] = "text",
    pair: Annotated[
        tuple[str, str] | None, Parameter(help="For a translating model: the fields of source and target.")
    ] = None,
    errors: Annotated[Errors, Parameter(help="What happens to a document that cannot be read.")] = "stop",
    device: Annotated[str, Parameter(help="cpu, cuda, or auto.")] = "auto",
    as_json: Annotated[bool, Parameter(name="--json", negative="", help="One JSON object on stdout.")] = False,
) -> None:
    """Measure a model on a text: loss, perplexity, bits per byte and per character; say whether it learned from it.

    Each document is read from its start, in windows that move on by the stride; every token is scored once. A model
    that translates is measured by BLEU and chrF++ on pairs of texts: --pair en bn.
    """
    import kotha
    from kotha.evaluate.tables import score_table

    opened = kotha.load(run, device)
    if pair is not None or path.endswith((".yaml", ".yml")):
        found = _translated(opened, path, pair, errors) if pair is not None else _run_task(opened, path)
        _show_rows(path, found, as_json)
        return
    if opened.config.family == "seq2seq":
        raise UsageError(f"{run} translates; give pairs of texts, and their fields with --pair")
    problems = Problems()
    with progress() as advance:
        score = opened.evaluate(
            path,
            context=context,
            stride=stride,
            baselines=None if baselines == "none" else baselines,
            on_progress=advance,
            split=split,
            field=field,
            errors=errors,
            on_problem=problems,
        )
    problems.summarize()
    if as_json:
        print_json(score.to_dict())
        return
    print_table(score_table(score, str(run)))
    if score.baselines is None:
        notes().print("kotha: no n-grams to compare with; name a data folder with --baselines")


def _run_task(opened: "LanguageModel", path: str) -> dict[str, Any]:
    from kotha.evaluate.harness import run_task

    return run_task(*opened.gpt, path)


def _translated(opened: "LanguageModel", path: str, fields: tuple[str, str], errors: Errors) -> dict[str, Any]:
    from kotha.evaluate.translation import evaluate_pairs

    if opened.config.family != "seq2seq":
        raise UsageError(f"{opened.path} is a {opened.config.family}; --pair is for one that translates (seq2seq)")
    with progress() as advance:
        return asdict(evaluate_pairs(opened.bundle, path, fields, errors=errors, on_progress=advance))


def _show_rows(title: str, found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    rows = [[name, f"{value:.4f}" if isinstance(value, float) else str(value)] for name, value in found.items()]
    results().print(table(title, ["", ""], rows))
