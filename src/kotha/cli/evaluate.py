"""``kotha evaluate``: how well a model foretells a text, beside what counting reaches."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from kotha.cli.flags import Field, InLanguage, Json, OnErrors, Pair, RunName, TextItself, flag
from kotha.cli.naming import place
from kotha.cli.spoken import tell
from kotha.cli.terminal import print_json, print_table, problems_told, progress, results, table
from kotha.errors import UsageError
from kotha.i18n.message import Message
from kotha.storage import bundled
from kotha.storage.status import is_file
from kotha.text.corpus.problems import Errors

if TYPE_CHECKING:
    from kotha.api.model import LanguageModel


def evaluate(
    run: RunName = None,
    path: Annotated[
        str | None, flag("A text: a file, folder or data folder; or a harness task (.yaml).", name="PATH")
    ] = None,
    /,
    *,
    text: TextItself = None,
    context: Annotated[int | None, flag("Tokens in a window; left out: the model's context.")] = None,
    stride: Annotated[int | None, flag("Tokens a window moves on by; left out: half the context.")] = None,
    baselines: Annotated[
        str, flag("Data folder to count n-grams in, or none; auto: the one the run was trained on.")
    ] = "auto",
    split: Annotated[str, flag("Split of a data folder to measure on.")] = "validation",
    field: Field = "text",
    pair: Pair = None,
    perturb: Annotated[
        tuple[str, ...],
        flag(
            "Also on the text with noise: spelling, typos, latin, digits, punctuation, or a file.",
            consume_multiple=True,
        ),
    ] = (),
    share: Annotated[float, flag("Share of the words that --perturb changes.")] = 0.2,
    errors: OnErrors = "stop",
    device: Annotated[str, flag("cpu, cuda, or auto.")] = "auto",
    language: InLanguage = "en",
    as_json: Json = False,
) -> None:
    """Measure a model on a text: loss, perplexity, bits per byte and per character; say whether it learned from it.

    Each document is read from its start, in windows that move on by the stride; every token is scored once. A model
    that translates is measured by BLEU and chrF++ on a table of pairs: their fields are guessed, or named by --pair en
    bn. One that names classes is measured on texts with labels, beside the commonest class and TF-IDF with logistic
    regression, or on images beside the nearest neighbour. A BERT guesses hidden words and judges pairs of stretches,
    beside what counting reaches. A file of questions with answers (or messages) is asked: how
    many are answered right. With --perturb: how far these figures fall when the text is written otherwise.
    """
    import kotha
    from kotha.evaluation.tables import score_table
    from kotha.text.corpus.dialogues import holds_dialogues

    folder, held_out = _model_and_text(run, path, text)
    if pair is not None and text is not None:
        raise UsageError("--pair names fields of a file with pairs; give a PATH instead of --text")
    opened = kotha.load(folder, device)
    if perturb:
        _show_perturbed(opened, held_out, perturb, as_json, share=share, pair=pair, errors=errors)
        return
    if opened.config.family == "seq2seq":
        _show_translations(opened, held_out, pair, errors, as_json)
        return
    if pair is not None:
        raise UsageError(
            "{path} is a {family}; --pair is for one that translates (seq2seq)",
            path=opened.path,
            family=opened.config.family,
        )
    if isinstance(held_out, str) and held_out.endswith((".yaml", ".yml")):
        _show_task(opened, held_out, as_json)
        return
    if isinstance(held_out, str) and opened.config.family == "gpt" and field == "text" and holds_dialogues(held_out):
        _show_instructions(opened, held_out, errors, as_json)
        return
    if opened.config.family == "vit" or opened.config.family.endswith("-classifier"):
        _show_classes(opened, held_out, baselines, errors, as_json)
        return
    if opened.config.family == "bert":
        _show_masked(opened, held_out, baselines, as_json, split=split, field=field, errors=errors)
        return
    with progress() as advance, problems_told() as problems:
        score = opened.evaluate(
            held_out,
            context=context,
            stride=stride,
            baselines=None if baselines == "none" else baselines,
            on_progress=advance,
            split=split,
            field=field,
            errors=errors,
            on_problem=problems,
        )
    if as_json:
        print_json(score.to_dict())
        return
    print_table(score_table(score, bundled.title(folder)))
    if score.baselines is None:
        tell(Message("no n-grams to compare with; name a data folder with --baselines"))


def _show_perturbed(
    opened: "LanguageModel", path: str | list[str], kinds: tuple[str, ...], as_json: bool, **how: Any
) -> None:
    """How far a figure falls when the text is written otherwise."""
    from kotha.evaluation.robustness import robustness_table

    if not isinstance(path, str):
        raise UsageError("--perturb changes a text in a file; give a PATH instead of --text")
    with progress() as advance:
        found = opened.evaluate_perturbed(path, kinds, on_progress=advance, **how)
    if as_json:
        print_json(found.to_dict())
        return
    print_table(robustness_table(found, str(opened.path)))


def _show_masked(opened: "LanguageModel", held_out: str | list[str], baselines: str, as_json: bool, **how: Any) -> None:
    """How many hidden words are guessed, and pairs judged, right."""
    from kotha.evaluation.masked import masked_table

    with progress() as advance:
        counted_in = None if baselines == "none" else baselines
        score = opened.evaluate_masked(held_out, baselines=counted_in, on_progress=advance, **how)
    if as_json:
        print_json(score.to_dict())
        return
    print_table(masked_table(score, str(opened.path)))


def _show_instructions(opened: "LanguageModel", path: str, errors: Errors, as_json: bool) -> None:
    """How many questions of a file are answered right."""
    from kotha.evaluation.instructions import instructions_table

    with progress() as advance:
        score = opened.evaluate_instructions(path, errors=errors, on_progress=advance)
    if as_json:
        print_json(score.to_dict())
        return
    print_table(instructions_table(score, str(opened.path)))


def _show_classes(
    opened: "LanguageModel", path: str | list[str], baselines: str, errors: Errors, as_json: bool
) -> None:
    """How well classes are told apart: texts of a table, or images."""
    from kotha.evaluation.classes_page import classes_table

    sees = opened.config.family == "vit"
    if not isinstance(path, str):
        what = Message("images, in a folder for each class") if sees else Message("texts with labels")
        raise UsageError(
            "{path} names classes; give a PATH to {what}, or ask kotha classify", path=opened.path, what=what
        )
    with progress() as advance:
        if sees:
            score = opened.evaluate_images(path, baselines=baselines == "auto", on_progress=advance)
        else:
            score = opened.evaluate_classes(path, baselines=baselines == "auto", errors=errors, on_progress=advance)
    if as_json:
        print_json(score.to_dict())
        return
    print_table(classes_table(score, str(opened.path)))
    if not score.baselines:
        tell(Message("nothing to compare with; the run has the examples that it needs"))


def _model_and_text(run: str | None, path: str | None, text: str | None) -> tuple[Path, str | list[str]]:
    """Which model is measured, and on what; what is alone is the text, since without one nothing is measured."""
    if text is not None:
        if path is not None:
            raise UsageError("--text is the text itself, instead of a PATH; give one of them")
        if os.path.isfile(text):  # noqa: PTH113 - a text may be too long for a path
            raise UsageError(
                "--text is the text itself, and {text} is a file; to measure on that leave --text out", text=text
            )
        return place(run), [text]
    if path is not None:
        return place(run), path
    if run is None or run == bundled.NAME or is_file(Path(run) / "config.json"):
        raise UsageError("evaluate needs PATH, a text to measure on, or --text; see kotha evaluate --help")
    return bundled.FOLDER, run


def _show_translations(
    opened: "LanguageModel", path: str | list[str], pair: tuple[str, str] | None, errors: Errors, as_json: bool
) -> None:
    """How close translations come, of the pairs of a table."""
    from kotha.evaluation.translation_page import translation_table

    if not isinstance(path, str):
        raise UsageError("{path} translates; give a PATH to pairs of texts, or ask kotha translate", path=opened.path)
    with progress() as advance:
        score = opened.evaluate_translations(path, pair=pair, errors=errors, on_progress=advance)
    if as_json:
        print_json(score.to_dict())
        return
    print_table(translation_table(score, str(opened.path)))


def _show_task(opened: "LanguageModel", path: str, as_json: bool) -> None:
    """What a task of the harness comes to."""
    from kotha.evaluation.harness import run_task

    found = run_task(*opened.gpt, path)
    if as_json:
        print_json(found)
        return
    rows = [[name, f"{value:.4f}" if isinstance(value, float) else str(value)] for name, value in found.items()]
    results().print(table(path, ["", ""], rows))
