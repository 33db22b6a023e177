"""``kotha train``: from a data folder, a table of pairs, or images, to a run folder."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from kotha.cli.interrupts import stopped
from kotha.cli.model_argument import place
from kotha.cli.options import MoreSettings, OnErrors, Pair, group
from kotha.cli.terminal import Output, Table
from kotha.cli.training_display import label, readable, training_display
from kotha.i18n.message import Message

if TYPE_CHECKING:
    from kotha.api.run import Run

Number = Annotated[int | None, Parameter(help="Overrides what is chosen.")]


@group
class OfPairs:
    """How a table of pairs is read."""

    pair: Pair = None
    reverse: bool = False
    """Of a table of pairs: learn the other direction."""
    tokenizer: str | None = None
    """Of a table of pairs: a tokenizer for both languages."""
    validation: Path | None = None
    """Of a table of pairs: pairs to choose by; left out, a share."""
    test: Path | None = None
    """Of a table of pairs: pairs to be measured on; left out, a share."""
    errors: OnErrors = "stop"


@group
class Processes:
    """How the processes of a training work, and what they write beside the run."""

    resume: bool = False
    """Go on from the last checkpoint in --out."""
    shard: bool = False
    """Under torchrun: each process keeps a part (FSDP)."""
    tensorboard: bool = False
    """Also write events for TensorBoard."""
    prompt: str = ""
    """What the samples begin with."""


def train(
    data: Path,
    /,
    *,
    out: Path,
    minutes: float | None = None,
    preset: str | None = None,
    recipe: str | None = None,
    steps: Number = None,
    checkpoint_every: Number = None,
    seed: Number = None,
    from_: Annotated[str | None, Parameter(name="--from")] = None,
    lora: int | None = None,
    teacher: tuple[str, ...] = (),
    settings: MoreSettings = MoreSettings(),  # noqa: B008 - frozen
    pairs: OfPairs = OfPairs(),  # noqa: B008
    processes: Processes = Processes(),  # noqa: B008
) -> Output | None:
    """Train a model; stop with Ctrl-C, go on with --resume.

    Sizes, batch and rates follow from the data and the time: `kotha train data --minutes 10 --out run`. A gpt preset
    learns next tokens, a bert preset masked words. A table of pairs makes a translator: `kotha train pairs.tsv --preset
    pocket-seq2seq --out run`; images, in a folder for each class or an .npz archive, one that tells them apart: `kotha
    train images --out run`. With --from a model that has learned before goes on (fine-tuning),
    under the data's tokenizer if that is another. With --teacher a gpt also learns from models that you trained before
    (distillation), and from several it becomes better than each. On several GPUs or machines:
    `torchrun --nproc-per-node 8 -m kotha train …`, with --shard for models that one cannot hold.

    Args:
        data: A data folder, made by `kotha prepare`; or a table of pairs: tsv, csv, jsonl; or images.
        out: The run folder to make, or to go on with.
        minutes: How long it may take; 10 where nothing else says it.
        preset: Exact name of a preset; left out, the sizes are chosen.
        recipe: course, classic or modern; left out, what suits the data.
        from_: Start from these weights: a run, a model or Hugging Face folder, or box.
        lora: With --from: learn only an addition of this rank to the weights.
        teacher: A trained model to learn from too; may be given again.
    """
    import kotha

    asked: dict[str, Any] = {"minutes": minutes, "preset": preset, "recipe": recipe, "start": from_}
    asked |= {"teachers": [place(each) for each in teacher], **vars(pairs), **vars(processes)}
    asked |= settings.given(kotha.train, steps=steps, checkpoint_every=checkpoint_every, seed=seed, lora=lora)
    is_first, alone = os.environ.get("RANK", "0") == "0", os.environ.get("WORLD_SIZE", "1") == "1"
    with training_display(speaks=is_first) as heard:
        run = kotha.train(data, out=out, **heard, **asked)
    if not is_first:
        return None
    return _described(run, stopped(run.summary, "train", data, "--out", out, "--resume", alone=alone))


def _described(run: "Run", error: Any) -> Output:
    from kotha.api.scores import reached

    summary, told = run.summary, reached(run)
    unmeasured = summary["stopped"] and summary["best_step"] is None
    hidden = {"validation", *(told.score.to_dict() if told else ())}
    remarks = [Message("Report: {path} (open it in a browser)", path=run.path / "report.html")]
    if unmeasured:
        hidden |= {"best_step", "loss_nats"}
        early = Message("It was stopped before it was first measured, so it has no loss and no best step yet.")
        remarks.insert(0, early)
    rows = [[label(name), readable(name, value)] for name, value in summary.items() if name not in hidden]
    for name, value in summary.get("validation", {}).items():
        rows.append([Message("validation {what}", what=label(name)), readable(name, value)])
    table = Table(str(run.path), [Message("summary"), ""], rows, remarks)
    beside = [told.table] if told else []
    said = [told.remark] if told and told.remark else []
    return Output(summary, *beside, table, remarks=said, error=error)
