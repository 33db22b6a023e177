"""``kotha adapt``: a trained model put to a use of its own."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App

from kotha.cli.flags import InLanguage, Json, MoreSettings, OnErrors, flag, group
from kotha.cli.spoken import tell
from kotha.cli.stopping import check_stopped
from kotha.cli.terminal import print_json, print_parts
from kotha.cli.training_display import TrainingDisplay

app = App(name="adapt", help="Put a trained model to a use of its own (fine-tuning).", help_format="plaintext")


@group
@dataclass(frozen=True, kw_only=True)
class Adapting:
    """What every use takes."""

    out: Annotated[Path, flag("The run folder to make, or to go on with.")]
    from_: Annotated[
        str | None, flag("The model to start from: a run, a model or Hugging Face folder, or box.", name="--from")
    ] = None
    lora: Annotated[int | None, flag("Learn an addition of this rank to the weights (LoRA), not all of them.")] = None
    seed: Annotated[int | None, flag("Decides the split, the order and dropout.")] = None
    resume: Annotated[bool, flag("Go on from the last checkpoint in --out.")] = False
    errors: OnErrors = "stop"
    settings: MoreSettings = MoreSettings()  # noqa: RUF009 - frozen
    language: InLanguage = "en"
    as_json: Json = False

    def run(self, use: str, data: Path | None, class_weights: str | None = None, **own: Any) -> None:
        """Adapt the model to a use, and show what it reached."""
        import kotha
        from kotha.api.scores import reached

        adapt = getattr(kotha, f"adapt_{use}")
        given = self.settings.given(adapt, seed=self.seed, lora=self.lora, class_weights=class_weights)
        how: dict[str, Any] = {"out": self.out, "start": self.from_, "errors": self.errors, "resume": self.resume}
        with TrainingDisplay() as display:
            run = adapt(data, **how, **own, **given, on_event=display.show, on_remark=display.say)
        if self.as_json:
            print_json(run.summary)
        check_stopped(run.summary, "adapt", use, "--out", self.out, "--resume")
        told = None if self.as_json else reached(run)
        if told:
            print_parts(told.table)
        if told and told.remark:
            tell(told.remark)


@app.command
def classify(
    data: Annotated[Path | None, flag("Texts with labels: csv, tsv, jsonl or parquet.", name="DATA")] = None,
    /,
    *,
    text: Annotated[str | None, flag("Field that holds the text; left out, it is guessed.")] = None,
    label: Annotated[str | None, flag("Field that holds the label; left out, it is guessed.")] = None,
    validation: Annotated[Path | None, flag("Examples to choose by; left out, a share of DATA.")] = None,
    test: Annotated[Path | None, flag("Examples to be measured on; left out, a share of DATA.")] = None,
    held_out: Annotated[float, flag("That share, of each class.")] = 0.1,
    epochs: Annotated[float, flag("Passes over the examples at most; it ends where nothing is gained.")] = 8.0,
    balanced: Annotated[bool, flag("Let examples of rare classes count more.")] = False,
    adapting: Adapting,
) -> None:
    """Make a text classifier of a GPT or BERT: `kotha adapt classify reviews.csv --from run --out moods`.

    A part of each class is held out and looked at once, at the end: accuracy, macro-F1, each class, beside the
    commonest class and TF-IDF with logistic regression. The page classes.html in --out shows which are taken for
    which. Then: `kotha classify moods "…"`.
    """
    own: dict[str, Any] = {"text": text, "label": label, "validation": validation, "test": test}
    own |= {"held_out": held_out, "epochs": epochs, "class_weights": "balanced" if balanced else None}
    adapting.run("classify", data, **own)


@app.command
def instruct(
    data: Annotated[
        Path | None, flag("Instructions with answers, or messages: jsonl, csv, tsv or parquet.", name="DATA")
    ] = None,
    /,
    *,
    instruction: Annotated[str | None, flag("Field that holds the instruction; left out, it is guessed.")] = None,
    answer: Annotated[str | None, flag("Field that holds the answer; left out, it is guessed.")] = None,
    group: Annotated[str | None, flag("Field whose equal values stay together; left out: story, group.")] = None,
    test: Annotated[Path | None, flag("Conversations to be asked; left out, a share of DATA.")] = None,
    held_out: Annotated[float, flag("That share, and another to choose by.")] = 0.1,
    epochs: Annotated[float, flag("Passes over the conversations at most; it ends where nothing is gained.")] = 8.0,
    adapting: Adapting,
) -> None:
    """Teach a GPT to answer: `kotha adapt instruct pairs.jsonl --from run --out taught`, then `kotha chat taught`.

    Loss is on the answers alone. Conversations that belong together (questions about one story) are all learned from
    or all held out, and the held-out ones are asked before and after.
    """
    own: dict[str, Any] = {"instruction": instruction, "answer": answer, "group": group, "test": test}
    adapting.run("instruct", data, **own, held_out=held_out, epochs=epochs)
