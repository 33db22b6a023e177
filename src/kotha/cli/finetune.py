"""``kotha finetune``: fine-tune a trained model to classify texts or to follow instructions."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from kotha.cli.interrupts import stopped
from kotha.cli.options import MoreSettings, OnErrors, group
from kotha.cli.terminal import Output
from kotha.cli.training_display import training_display


@group
class FinetuneOptions:
    """Options shared by all fine-tuning commands."""

    out: Path
    """Run folder to create or to resume."""
    from_: Annotated[str | None, Parameter(name="--from")] = None
    """Model to start from: a run, model or Hugging Face folder, or box."""
    lora: int | None = None
    """Rank of a LoRA adapter to train instead of all weights."""
    seed: int | None = None
    """Random seed for the split, the data order and dropout."""
    resume: bool = False
    """Resume from the last checkpoint in --out."""
    errors: OnErrors = "stop"
    settings: MoreSettings = MoreSettings()

    def run(self, use: str, data: Path | None, **own: Any) -> Output:
        """Fine-tune the model and show its score."""
        import kotha
        from kotha.api.scores import summary_score

        finetune = getattr(kotha, f"finetune_{use}")
        given = self.settings.given(finetune, seed=self.seed, lora=self.lora)
        common: dict[str, Any] = {"out": self.out, "start": self.from_, "errors": self.errors, "resume": self.resume}
        with training_display() as listeners:
            run = finetune(data, **common, **own, **given, **listeners)
        error = stopped(run.summary, "finetune", use, "--out", self.out, "--resume")
        score = None if error else summary_score(run)
        parts, remarks = ([score.table], [score.remark]) if score else ([], [])
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
    """Fine-tune a GPT or BERT model to classify text.

    A share of each class is held out and evaluated once, at the end. The results are accuracy, macro-F1 and the scores
    of each class, compared with always predicting the most frequent class and with logistic regression on TF-IDF. The
    page classes.html in the run folder shows which classes are confused with each other.

    Example: `kotha finetune classify reviews.csv --from run --out moods`, then `kotha classify moods "…"`.

    Args:
        data: Labelled texts: csv, tsv, jsonl or parquet.
        text: Field that holds the text (default: guessed).
        label: Field that holds the label (default: guessed).
        validation: Validation examples (default: a share of DATA).
        test: Test examples (default: a share of DATA).
        held_out: Share of each class to hold out.
        epochs: Maximum number of epochs; training stops early once the model no longer improves.
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
    """Fine-tune a GPT model to follow instructions.

    The loss covers only the answers. The conversations of one group (questions about one story) are either all used for
    training or all held out. The model answers the held-out questions before and after training.

    Example: `kotha finetune instruct questions.jsonl --from run --out assistant`, then `kotha chat assistant`.

    Args:
        data: Instructions with answers, or messages: jsonl, csv, tsv or parquet.
        instruction: Field that holds the instruction (default: guessed).
        answer: Field that holds the answer (default: guessed).
        group: Field that groups conversations (default: story or group).
        test: Test conversations (default: a share of DATA).
        held_out: Share of the examples to hold out for testing; the same share is held out for validation.
        epochs: Maximum number of epochs over the conversations; training stops early once the model no longer improves.
    """
    own: dict[str, Any] = {"instruction": instruction, "answer": answer, "group": group, "test": test}
    return options.run("instruct", data, **own, held_out=held_out, epochs=epochs)
