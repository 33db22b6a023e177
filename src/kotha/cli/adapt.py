"""``kotha adapt``: a trained model put to a use of its own."""

import shlex
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App

from kotha.cli.flags import InLanguage, Json, More, OnErrors, flag, from_toml, from_words
from kotha.cli.spoken import tell
from kotha.cli.stopping import StoppedError
from kotha.cli.terminal import print_json, print_table
from kotha.cli.training_display import TrainingDisplay
from kotha.errors import UsageError
from kotha.i18n.message import Message

app = App(name="adapt", help="Put a trained model to a use of its own (fine-tuning).", help_format="plaintext")


FROM = flag("The model to start from: a run, a model or Hugging Face folder, or box.", name="--from")
LORA = flag("Learn an addition of this rank to the weights (LoRA), not all of them.")


@app.command
def classify(
    data: Annotated[Path | None, flag("Texts with labels: csv, tsv, jsonl or parquet.", name="DATA")] = None,
    /,
    *,
    out: Annotated[Path, flag("The run folder to make, or to go on with.")],
    from_: Annotated[str | None, FROM] = None,
    text: Annotated[str | None, flag("Field that holds the text; left out, it is guessed.")] = None,
    label: Annotated[str | None, flag("Field that holds the label; left out, it is guessed.")] = None,
    validation: Annotated[Path | None, flag("Examples to choose by; left out, a share of DATA.")] = None,
    test: Annotated[Path | None, flag("Examples to be measured on; left out, a share of DATA.")] = None,
    held_out: Annotated[float, flag("That share, of each class.")] = 0.1,
    epochs: Annotated[float, flag("Passes over the examples at most; it ends where nothing is gained.")] = 8.0,
    balanced: Annotated[bool, flag("Let examples of rare classes count more.")] = False,
    lora: Annotated[int | None, LORA] = None,
    seed: Annotated[int | None, flag("Decides the split, the order and dropout.")] = None,
    config: Annotated[Path | None, flag("A TOML file with more settings.")] = None,
    set_: More = (),
    resume: Annotated[bool, flag("Go on from the last checkpoint in --out.")] = False,
    errors: OnErrors = "stop",
    language: InLanguage = "en",
    as_json: Json = False,
) -> None:
    """Make a text classifier of a GPT or BERT: `kotha adapt classify reviews.csv --from run --out moods`.

    A part of each class is held out and looked at once, at the end: accuracy, macro-F1, each class, beside the
    commonest class and TF-IDF with logistic regression. The page classes.html in --out shows which are taken for
    which. Then: `kotha classify moods "…"`.
    """
    import kotha
    from kotha.evaluation.classification import ClassificationScore, classes_table
    from kotha.finetune.classify import PAGE

    if not resume and (data is None or from_ is None):
        raise UsageError(
            "{command} needs DATA and --from MODEL, or --resume; see kotha {command} --help", command="adapt classify"
        )
    flags = {"seed": seed, "lora": lora, "class_weights": "balanced" if balanced else None}
    given = _settings(config, set_, flags)
    with TrainingDisplay() as display:
        run = kotha.adapt_classify(
            data,
            out=out,
            start=from_,
            text=text,
            label=label,
            validation=validation,
            test=test,
            held_out=held_out,
            epochs=epochs,
            errors=errors,
            resume=resume,
            on_event=display.show,
            on_remark=display.say,
            **given,
        )
    summary = run.summary
    if as_json:
        print_json(summary)
    _check_stopped(summary, "classify", out)
    if not as_json:
        score = ClassificationScore.of_summary(summary)
        print_table(classes_table(score, str(out)))
        # Of very many classes no matrix is kept; the page has them one by one.
        tell(
            Message("confusion matrix: {path} (open it in a browser)", path=out / PAGE)
            if score.confusion
            else Message("page in {path}", path=out / PAGE)
        )


@app.command
def instruct(
    data: Annotated[
        Path | None, flag("Instructions with answers, or messages: jsonl, csv, tsv or parquet.", name="DATA")
    ] = None,
    /,
    *,
    out: Annotated[Path, flag("The run folder to make, or to go on with.")],
    from_: Annotated[str | None, FROM] = None,
    instruction: Annotated[str | None, flag("Field that holds the instruction; left out, it is guessed.")] = None,
    answer: Annotated[str | None, flag("Field that holds the answer; left out, it is guessed.")] = None,
    group: Annotated[str | None, flag("Field whose equal values stay together; left out: story, group.")] = None,
    test: Annotated[Path | None, flag("Conversations to be asked; left out, a share of DATA.")] = None,
    held_out: Annotated[float, flag("That share, and another to choose by.")] = 0.1,
    epochs: Annotated[float, flag("Passes over the conversations at most; it ends where nothing is gained.")] = 8.0,
    lora: Annotated[int | None, LORA] = None,
    seed: Annotated[int | None, flag("Decides the split, the order and dropout.")] = None,
    config: Annotated[Path | None, flag("A TOML file with more settings.")] = None,
    set_: More = (),
    resume: Annotated[bool, flag("Go on from the last checkpoint in --out.")] = False,
    errors: OnErrors = "stop",
    language: InLanguage = "en",
    as_json: Json = False,
) -> None:
    """Teach a GPT to answer: `kotha adapt instruct pairs.jsonl --from run --out taught`, then `kotha chat taught`.

    Loss is on the answers alone. Conversations that belong together (questions about one story) are all learned from
    or all held out, and the held-out ones are asked before and after.
    """
    import kotha
    from kotha.evaluation.instructions import InstructionScore, instructions_table

    if not resume and (data is None or from_ is None):
        raise UsageError(
            "{command} needs DATA and --from MODEL, or --resume; see kotha {command} --help", command="adapt instruct"
        )
    given = _settings(config, set_, {"seed": seed, "lora": lora})
    with TrainingDisplay() as display:
        run = kotha.adapt_instruct(
            data,
            out=out,
            start=from_,
            instruction=instruction,
            answer=answer,
            group=group,
            test=test,
            held_out=held_out,
            epochs=epochs,
            errors=errors,
            resume=resume,
            on_event=display.show,
            on_remark=display.say,
            **given,
        )
    summary = run.summary
    if as_json:
        print_json(summary)
    _check_stopped(summary, "instruct", out)
    if not as_json:
        print_table(instructions_table(InstructionScore.of_summary(summary), str(out), summary["before"]["right"]))


def _settings(config: Path | None, words: tuple[str, ...], flags: dict[str, Any]) -> dict[str, Any]:
    """The settings of a training: of a file, of words, and of flags that were given."""
    given = {name: value for name, value in flags.items() if value is not None}
    return {**from_toml(config), **from_words(words), **given}


def _check_stopped(summary: dict[str, Any], use: str, out: Path) -> None:
    if summary["stopped"]:
        go_on = shlex.join(["kotha", "adapt", use, "--out", str(out), "--resume"])
        raise StoppedError(
            "stopped at step {steps:,} and saved; go on with: {go_on}", steps=summary["steps"], go_on=go_on, alone=True
        )
