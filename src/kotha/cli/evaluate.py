"""``kotha evaluate``: how well a model foretells a text, beside what counting reaches."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from kotha.cli.terminal import Problems, print_json, progress, results, table
from kotha.errors import UsageError
from kotha.text.corpus.problems import Errors

Run = Annotated[Path, Parameter(help="A run folder (its best model), or a model folder.")]


def evaluate(
    run: Run,
    path: Annotated[str, Parameter(help="Unseen text: a file, folder or data folder; or a harness task (.yaml).")],
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
    """Measure a model on held-out text: loss, perplexity, bits per byte and per character.

    Each document is read from its start, in windows that move on by the stride; every token is scored once. A model
    that translates is measured by BLEU and chrF++ on pairs of texts: --pair en bn.
    """
    from kotha.evaluate.baselines import count_baselines
    from kotha.evaluate.held_out import read_held_out
    from kotha.evaluate.perplexity import evaluate_text
    from kotha.text.shards import Dataset

    if pair is not None:
        _show_rows(path, _translated(run, path, pair, errors, device), as_json)
        return
    model, tokenizer = open_gpt(run, device)
    if path.endswith((".yaml", ".yml")):
        from kotha.evaluate.harness import run_task

        _show_rows(path, run_task(model, tokenizer, path), as_json)
        return
    data = _data_folder(run, baselines)
    problems = Problems()
    text = read_held_out(path, tokenizer, split=split, field=field, errors=errors, on_problem=problems)
    problems.summarize()
    with progress() as advance:
        score = evaluate_text(model, text, context_length=context, stride=stride, on_progress=advance)
        beside = None
        if data is not None:
            beside = count_baselines(Dataset(data), text, model.config.vocab_size, on_progress=advance)
    if as_json:
        print_json({**asdict(score), "baselines": None if beside is None else asdict(beside)})
        return
    _show(run, score, beside)


def open_gpt(run: Path, device: str) -> Any:
    """A GPT with its tokenizer, on a device."""
    from kotha.model.gpt import GPT

    opened = _open(run, device)
    if not isinstance(opened.model, GPT) or opened.tokenizer is None:
        more = "; give pairs of texts, and their fields with --pair" if opened.config.family == "seq2seq" else ""
        raise UsageError(f"{run} holds a {opened.config.family} model; only a GPT foretells text{more}")
    return opened.model, opened.tokenizer


def _open(run: Path, device: str) -> Any:
    import torch

    from kotha import bundle

    chosen = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    return bundle.load(run, chosen).widened()


def _translated(run: Path, path: str, fields: tuple[str, str], errors: Errors, device: str) -> dict[str, Any]:
    from kotha.evaluate.translation import score_translations, translate
    from kotha.text.corpus.documents import read_pairs

    opened = _open(run, device)
    if opened.config.family != "seq2seq" or opened.tokenizer is None:
        raise UsageError(f"{run} holds a {opened.config.family} model; --pair is for one that translates (seq2seq)")
    pairs = list(read_pairs([path], source_field=fields[0], target_field=fields[1], errors=errors))
    with progress() as advance:
        found = translate(opened.model, opened.tokenizer, [pair.source_text for pair in pairs], on_progress=advance)
    return asdict(score_translations(found, [pair.target_text for pair in pairs]))


def _data_folder(run: Path, asked: str) -> Path | None:
    from kotha.evaluate.baselines import find_data
    from kotha.runs import run_config

    if asked == "none":
        return None
    return find_data(run_config(run), run) if asked == "auto" else Path(asked)


def _show_rows(title: str, found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    rows = [[name, f"{value:.4f}" if isinstance(value, float) else str(value)] for name, value in found.items()]
    results().print(table(title, ["", ""], rows))


def _show(run: Path, score: Any, beside: Any) -> None:
    rows = [[f"{run}", *_figures(score)]] + [[row.name, *_figures(row)] for row in (beside.rows if beside else [])]
    console = results()
    header = ["", "nats per token", "perplexity", "bits per byte", "bits per character"]
    console.print(table(score.text, header, rows))
    console.print(
        f"{score.tokens:,} tokens of {score.documents:,} documents ({score.bytes:,} bytes, {score.characters:,} "
        f"characters); context {score.context}, stride {score.stride}; tokenizer {score.tokenizer}",
        markup=False,
    )
    if score.unknown:
        console.print(
            f"{score.unknown:,} tokens are unknown to the tokenizer: what they hide was not measured, so bits per "
            "byte and per character are too low",
            markup=False,
        )
    if beside is None:
        console.print("No baselines: the data folder of the run was not found; name it with --baselines DATA")
    elif beside.counted_tokens < beside.all_tokens:
        console.print(f"n-grams counted in the first {beside.counted_tokens:,} of {beside.all_tokens:,} tokens")


def _figures(row: Any) -> list[str]:
    wide = f"{row.perplexity:,.1f}" if row.perplexity < 1e6 else f"{row.perplexity:.2e}"
    return [f"{row.loss_nats:.4f}", wide, f"{row.bits_per_byte:.4f}", f"{row.bits_per_character:.4f}"]
