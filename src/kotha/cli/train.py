"""``kotha train``: train a model on a data folder, a table of pairs, or images."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from kotha.api.progress import label
from kotha.cli.interrupts import stopped
from kotha.cli.model_argument import model_path
from kotha.cli.options import MoreSettings, OnErrors, Pair, group
from kotha.cli.terminal import Output, Table
from kotha.cli.training_display import readable, training_display
from kotha.i18n.message import Message
from kotha.i18n.numbers import Duration

if TYPE_CHECKING:
    from kotha.api.run import Run


@group
class PairOptions:
    """Options for a table of pairs."""

    pair: Pair = None
    reverse: bool = False
    """For a table of pairs: translate in the reverse direction."""
    tokenizer: str | None = None
    """For a table of pairs: tokenizer for both languages (default: a new one)."""
    validation: Path | None = None
    """For a table of pairs: validation pairs (default: a share of DATA)."""
    test: Path | None = None
    """For a table of pairs: test pairs (default: a share of DATA)."""
    errors: OnErrors = "stop"


@group
class ProcessOptions:
    """Options for the processes in a training run, and for their logs."""

    resume: bool = False
    """Resume from the last checkpoint in --out."""
    shard: bool = False
    """Under torchrun: shard the model across processes (FSDP)."""
    tensorboard: bool = False
    """Also log to TensorBoard."""
    prompt: str = ""
    """Prompt for the text samples generated during training."""


def train(
    data: Path,
    /,
    *,
    out: Path,
    minutes: float | None = None,
    preset: str | None = None,
    recipe: str | None = None,
    quality: Literal["quick", "standard", "best"] = "best",
    steps: int | None = None,
    checkpoint_every: int | None = None,
    seed: int | None = None,
    from_: Annotated[str | None, Parameter(name="--from")] = None,
    lora: int | None = None,
    teacher: tuple[str, ...] = (),
    settings: MoreSettings = MoreSettings(),  # noqa: B008 - frozen
    pairs: PairOptions = PairOptions(),  # noqa: B008
    processes: ProcessOptions = ProcessOptions(),  # noqa: B008
) -> Output | None:
    """Train a model on a data folder, a table of pairs, or images.

    The run folder contains checkpoints, the best model, metrics and report.html. Ctrl-C saves a checkpoint and stops;
    the same command with --resume continues.

    By default, the model size, the batch size and the learning rates are chosen to fit the data and the time budget:
    `kotha train data --minutes 10 --out run`. A model with a gpt preset is trained to predict the next token, and one
    with a bert preset to predict masked words.

    On a table of pairs, a translation model is trained: `kotha train pairs.tsv --preset pocket-seq2seq --out run`. On
    images, in one folder per class or in an .npz archive, a classifier is trained: `kotha train images --out run`.

    --from initializes the model with the weights of another model, and adapts them if the data uses a different
    tokenizer. --teacher distils one or more trained models into a gpt model.

    On several GPUs or machines, use `torchrun --nproc-per-node 8 -m kotha train …`, with --shard for models that do not
    fit on one GPU.

    Args:
        data: Data folder created by `kotha prepare`, a table of pairs (tsv, csv or jsonl), or images.
        out: Run folder to create or to resume.
        minutes: Time budget in minutes (default: 10 without --preset and --steps).
        preset: Preset name (default: sizes are chosen to fit the data and the time).
        recipe: Training recipe: course, classic or modern (default: depends on the data).
        quality: Strategy for a long time budget: quick (one model), standard (a larger one) or best (also teachers).
        steps: Number of training steps (default: chosen from the time budget).
        checkpoint_every: Steps between checkpoints (default: at each evaluation).
        seed: Random seed for the initial weights, the data order and dropout (default: 0).
        from_: Model whose weights to start from: a run, model or Hugging Face folder, or box.
        lora: With --from: rank of a LoRA adapter to train instead of all weights.
        teacher: Trained model to distil from; may be repeated.
    """
    import kotha

    arguments: dict[str, Any] = {"minutes": minutes, "preset": preset, "recipe": recipe, "quality": quality}
    arguments |= {"start": from_, "teachers": [model_path(each) for each in teacher], **vars(pairs), **vars(processes)}
    arguments |= settings.given(kotha.train, steps=steps, checkpoint_every=checkpoint_every, seed=seed, lora=lora)
    is_first, how = os.environ.get("RANK", "0") == "0", {"alone": os.environ.get("WORLD_SIZE", "1") == "1"}
    with training_display(prints=is_first) as listeners:
        run = kotha.train(data, out=out, **listeners, **arguments)
    return _described(run, stopped(run.summary, "train", data, "--out", out, "--resume", **how)) if is_first else None


def _described(run: "Run", error: Any) -> Output:
    from kotha.api.scores import summary_score

    summary, presented = run.summary, summary_score(run)
    unmeasured = summary["stopped"] and summary["best_step"] is None
    hidden = {"validation", "stages", *(presented.score.to_dict() if presented else ())}
    remarks = [Message("Report: {path} (open it in a browser)", path=run.path / "report.html")]
    if unmeasured:
        hidden |= {"best_step", "loss_nats"}
        template = (
            "The run stopped before its first evaluation: it has no loss and no best step yet, but its last weights "
            "are saved."
        )
        remarks.insert(0, Message(template))
    rows = [[label(name), readable(name, value)] for name, value in summary.items() if name not in hidden]
    for name, value in summary.get("validation", {}).items():
        rows.append([Message("validation {what}", what=label(name)), readable(name, value)])
    table = Table(str(run.path), [Message("summary"), ""], rows, remarks)
    scores = [presented.table] if presented else []
    notes = [presented.remark] if presented and presented.remark else []
    stages = [_stages(summary["stages"])] if "stages" in summary else []
    return Output(summary, *stages, *scores, table, remarks=notes, error=error)


def _stages(stages: list[dict[str, Any]]) -> Table:
    """Return a table with the results of each stage in a run."""
    header = [Message("stage"), Message("layers x width"), Message("steps"), Message("time"), Message("bits per byte")]
    rows = [
        [
            Message("teacher") if each["role"] == "teacher" else Message("student"),
            f"{each['n_layers']} x {each['d_model']}",
            "" if each["steps"] is None else f"{each['steps']:,}",
            "" if each["seconds"] is None else Message("{time}", time=Duration(each["seconds"])),
            "" if each["bits_per_byte"] is None else f"{each['bits_per_byte']:.4f}",
        ]
        for each in stages
    ]
    return Table(Message("stages"), header, rows)
