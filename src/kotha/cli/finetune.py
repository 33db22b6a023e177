"""``kotha finetune``: turn a trained model into a classifier, or teach it to answer."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from kotha.cli.interrupts import stopped
from kotha.cli.options import MoreSettings, OnErrors, group
from kotha.cli.terminal import Output
from kotha.cli.training_display import training_display


@group
class FinetuneOptions:
    """What every use takes."""

    out: Path
    """The run folder to make, or to go on with."""
    from_: Annotated[str | None, Parameter(name="--from")] = None
    """The model to start from: a run, a model or Hugging Face folder, or box."""
    lora: int | None = None
    """Learn an addition of this rank to the weights (LoRA), not all of them."""
    seed: int | None = None
    """Decides the split, the order and dropout."""
    resume: bool = False
    """Go on from the last checkpoint in --out."""
    errors: OnErrors = "stop"
    settings: MoreSettings = MoreSettings()

    def run(self, use: str, data: Path | None, **own: Any) -> Output:
        """Fine-tune the model and show its score."""
        import kotha
        from kotha.api.scores import reached

        finetune = getattr(kotha, f"finetune_{use}")
        given = self.settings.given(finetune, seed=self.seed, lora=self.lora)
        how: dict[str, Any] = {"out": self.out, "start": self.from_, "errors": self.errors, "resume": self.resume}
        with training_display() as heard:
            run = finetune(data, **how, **own, **given, **heard)
        error = stopped(run.summary, "finetune", use, "--out", self.out, "--resume")
        told = None if error else reached(run)
        parts, remarks = ([told.table], [told.remark]) if told else ([], [])
        return Output(run.summary, *parts, remarks=filter(None, remarks), error=error)


def classify(
    data: Annotated[Path | None, Parameter(name="DATA")] = None,
    /,
    *,
    text: str | None = None,
    label: str | None = None,
    validation: Path | None = None,
    test: Path | None = None,
    held_out: float = 0.1,
    epochs: float = 8.0,
    options: FinetuneOptions,
) -> Output:
    """Make a text classifier of a GPT or BERT: `kotha finetune classify reviews.csv --from run --out moods`.

    A part of each class is held out and looked at once, at the end: accuracy, macro-F1, each class, beside the
    commonest class and TF-IDF with logistic regression. The page classes.html in --out shows which are taken for
    which. Then: `kotha classify moods "…"`.

    Args:
        data: Texts with labels: csv, tsv, jsonl or parquet.
        text: Field that holds the text; left out, it is guessed.
        label: Field that holds the label; left out, it is guessed.
        validation: Examples to choose by; left out, a share of DATA.
        test: Examples to be measured on; left out, a share of DATA.
        held_out: That share, of each class.
        epochs: Passes over the examples at most; it ends where nothing is gained.
    """
    own: dict[str, Any] = {"text": text, "label": label, "validation": validation, "test": test}
    own |= {"held_out": held_out, "epochs": epochs}
    return options.run("classify", data, **own)


def instruct(
    data: Annotated[Path | None, Parameter(name="DATA")] = None,
    /,
    *,
    instruction: str | None = None,
    answer: str | None = None,
    group: str | None = None,
    test: Path | None = None,
    held_out: float = 0.1,
    epochs: float = 8.0,
    options: FinetuneOptions,
) -> Output:
    """Teach a GPT to answer: `kotha finetune instruct pairs.jsonl --from run --out taught`, then `kotha chat taught`.

    Loss is on the answers alone. Conversations that belong together (questions about one story) are all learned from
    or all held out, and the held-out ones are asked before and after.

    Args:
        data: Instructions with answers, or messages: jsonl, csv, tsv or parquet.
        instruction: Field that holds the instruction; left out, it is guessed.
        answer: Field that holds the answer; left out, it is guessed.
        group: Field whose equal values stay together; left out: story, group.
        test: Conversations to be asked; left out, a share of DATA.
        held_out: That share, and another to choose by.
        epochs: Passes over the conversations at most; it ends where nothing is gained.
    """
    own: dict[str, Any] = {"instruction": instruction, "answer": answer, "group": group, "test": test}
    return options.run("instruct", data, **own, held_out=held_out, epochs=epochs)
