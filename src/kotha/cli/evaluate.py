"""``kotha evaluate``: how well a model foretells a text, beside what counting reaches."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from kotha.cli.flags import Field, InLanguage, Json, OnErrors, Pair, RunName, TextItself, flag
from kotha.cli.naming import place
from kotha.cli.spoken import tell
from kotha.cli.terminal import print_json, print_table, problems_told, progress
from kotha.errors import UsageError
from kotha.i18n.message import Message
from kotha.storage import bundled
from kotha.storage.status import is_file

if TYPE_CHECKING:
    from kotha.api.model import LanguageModel
    from kotha.report.table import Table

    # What was found, a table of it, and what is to be said beside.
    Measured = tuple[Any, Table, Message | None]


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

    folder, held_out = _model_and_text(run, path, text)
    if pair is not None and text is not None:
        raise UsageError("--pair names fields of a file with pairs; give a PATH instead of --text")
    opened = kotha.load(folder, device)
    if pair is not None and not perturb and opened.config.family != "seq2seq":
        raise UsageError(
            "{path} is a {family}; --pair is for one that translates (seq2seq)",
            path=opened.path,
            family=opened.config.family,
        )
    asked: dict[str, Any] = {"context": context, "stride": stride, "split": split, "field": field, "pair": pair}
    asked |= {"baselines": None if baselines == "none" else baselines, "share": share, "errors": errors}
    with progress() as advance, problems_told() as problems:
        asked |= {"on_progress": advance, "on_problem": problems}
        score, shown, remark = _measure(opened, held_out, perturb, asked)
    if as_json:
        print_json(score if isinstance(score, dict) else score.to_dict())
        return
    print_table(shown)
    if remark is not None:
        tell(remark)


def _measure(
    opened: "LanguageModel", held_out: str | list[str], kinds: tuple[str, ...], asked: dict[str, Any]
) -> "Measured":
    """The figures that a model of its family is measured by, and a table of them."""
    from kotha.text.corpus.dialogues import holds_dialogues

    def given(*names: str) -> dict[str, Any]:
        return {name: asked[name] for name in (*names, "on_progress")}

    family, name = opened.config.family, str(opened.path)
    path = held_out if isinstance(held_out, str) else None
    if kinds:
        from kotha.evaluation.robustness import robustness_table

        if path is None:
            raise UsageError("--perturb changes a text in a file; give a PATH instead of --text")
        fall = opened.evaluate_perturbed(path, kinds, **given("share", "pair", "errors"))
        return fall, robustness_table(fall, name), None
    if family == "seq2seq":
        from kotha.evaluation.translation import translation_table

        if path is None:
            raise UsageError(
                "{path} translates; give a PATH to pairs of texts, or ask kotha translate", path=opened.path
            )
        close = opened.evaluate_translations(path, **given("pair", "errors"))
        return close, translation_table(close, name), None
    if path is not None and path.endswith((".yaml", ".yml")):
        return _run_task(opened, path)
    if path is not None and family == "gpt" and asked["field"] == "text" and holds_dialogues(path):
        from kotha.evaluation.instructions import instructions_table

        right = opened.evaluate_instructions(path, **given("errors"))
        return right, instructions_table(right, name), None
    if family == "vit" or family.endswith("-classifier"):
        return _measure_classes(opened, path, asked)
    if family == "bert":
        from kotha.evaluation.masked import masked_table

        guessed = opened.evaluate_masked(held_out, **given("baselines", "split", "field", "errors"))
        return guessed, masked_table(guessed, name), None
    from kotha.evaluation.text_score import score_table

    read = given("context", "stride", "baselines", "split", "field", "errors", "on_problem")
    score = opened.evaluate(held_out, **read)
    alone = Message("no n-grams to compare with; name a data folder with --baselines")
    return score, score_table(score, bundled.title(opened.path or Path())), alone if score.baselines is None else None


def _measure_classes(opened: "LanguageModel", path: str | None, asked: dict[str, Any]) -> "Measured":
    """How well classes are told apart: texts of a table, or images."""
    from kotha.evaluation.classification import classes_table

    sees = opened.config.family == "vit"
    if path is None:
        what = Message("images, in a folder for each class") if sees else Message("texts with labels")
        raise UsageError(
            "{path} names classes; give a PATH to {what}, or ask kotha classify", path=opened.path, what=what
        )
    how: Any = {"baselines": asked["baselines"] == "auto", "on_progress": asked["on_progress"]}
    if sees:
        score = opened.evaluate_images(path, **how)
    else:
        score = opened.evaluate_classes(path, errors=asked["errors"], **how)
    alone = Message("nothing to compare with; the run has the examples that it needs")
    return score, classes_table(score, str(opened.path)), None if score.baselines else alone


def _run_task(opened: "LanguageModel", path: str) -> "Measured":
    """What a task of the harness comes to."""
    from kotha.evaluation.harness import run_task
    from kotha.report.table import Table

    found = run_task(*opened.gpt, path)
    rows = [[name, f"{value:.4f}" if isinstance(value, float) else str(value)] for name, value in found.items()]
    return found, Table(path, ["", ""], rows), None


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
