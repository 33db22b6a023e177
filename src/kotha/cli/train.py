"""``kotha train``: from a data folder, a table of pairs, or images, to a run folder."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from kotha.cli.flags import InLanguage, MoreSettings, OnErrors, Pair, flag, group
from kotha.cli.naming import place
from kotha.cli.spoken import tell
from kotha.cli.stopping import check_stopped
from kotha.cli.terminal import Table, print_parts, show
from kotha.cli.training_display import TrainingDisplay, label, readable
from kotha.i18n.message import Message

if TYPE_CHECKING:
    from kotha.api.run import Run

Number = Annotated[int | None, flag("Overrides what is chosen.")]


@group
@dataclass(frozen=True, kw_only=True)
class OfPairs:
    """How a table of pairs is read: one flag for each field."""

    pair: Pair = None
    reverse: Annotated[bool, flag("Of a table of pairs: learn the other direction.")] = False
    tokenizer: Annotated[str | None, flag("Of a table of pairs: a tokenizer for both languages.")] = None
    validation: Annotated[Path | None, flag("Of a table of pairs: pairs to choose by; left out, a share.")] = None
    test: Annotated[Path | None, flag("Of a table of pairs: pairs to be measured on; left out, a share.")] = None
    errors: OnErrors = "stop"


@group
@dataclass(frozen=True, kw_only=True)
class Processes:
    """How the processes of a training work, and what they write beside the run."""

    resume: Annotated[bool, flag("Go on from the last checkpoint in --out.")] = False
    shard: Annotated[bool, flag("Under torchrun: each process keeps a part (FSDP).")] = False
    tensorboard: Annotated[bool, flag("Also write events for TensorBoard.")] = False
    prompt: Annotated[str, flag("What the samples begin with.")] = ""


def train(
    data: Annotated[
        Path, flag("A data folder, made by `kotha prepare`; or a table of pairs: tsv, csv, jsonl; or images.")
    ],
    /,
    *,
    out: Annotated[Path, flag("The run folder to make, or to go on with.")],
    minutes: Annotated[float | None, flag("How long it may take; 10 where nothing else says it.")] = None,
    preset: Annotated[str | None, flag("Exact name of a preset; left out, the sizes are chosen.")] = None,
    recipe: Annotated[str | None, flag("course, classic or modern; left out, what suits the data.")] = None,
    steps: Number = None,
    checkpoint_every: Number = None,
    seed: Number = None,
    from_: Annotated[
        str | None, flag("Start from these weights: a run, a model or Hugging Face folder, or box.", name="--from")
    ] = None,
    lora: Annotated[int | None, flag("With --from: learn only an addition of this rank to the weights.")] = None,
    teacher: Annotated[tuple[str, ...], flag("A trained model to learn from too; may be given again.")] = (),
    settings: MoreSettings = MoreSettings(),  # noqa: B008 - frozen
    pairs: OfPairs = OfPairs(),  # noqa: B008
    processes: Processes = Processes(),  # noqa: B008
    language: InLanguage = "en",
    as_json: Annotated[bool, flag("The summary as JSON on stdout.", name="--json")] = False,
) -> None:
    """Train a model; stop with Ctrl-C, go on with --resume.

    Sizes, batch and rates follow from the data and the time: `kotha train data --minutes 10 --out run`. A gpt preset
    learns next tokens, a bert preset masked words. A table of pairs makes a translator: `kotha train pairs.tsv --preset
    pocket-seq2seq --out run`; images, in a folder for each class or an .npz archive, one that tells them apart: `kotha
    train images --out run`. With --from a model that has learned before goes on (fine-tuning),
    under the data's tokenizer if that is another. With --teacher a gpt also learns from models that you trained before
    (distillation), and from several it becomes better than each. On several GPUs or machines:
    `torchrun --nproc-per-node 8 -m kotha train …`, with --shard for models that one cannot hold.
    """
    import kotha

    asked: dict[str, Any] = {"minutes": minutes, "preset": preset, "recipe": recipe, "start": from_}
    asked |= {"teachers": [place(each) for each in teacher], **vars(pairs), **vars(processes)}
    asked |= settings.given(kotha.train, steps=steps, checkpoint_every=checkpoint_every, seed=seed, lora=lora)
    is_first, alone = os.environ.get("RANK", "0") == "0", os.environ.get("WORLD_SIZE", "1") == "1"
    with TrainingDisplay(speaks=is_first) as display:
        run = kotha.train(data, out=out, on_event=display.show, on_remark=display.say, **asked)
    if is_first:
        _tell(run, as_json)
        check_stopped(run.summary, "train", data, "--out", out, "--resume", alone=alone)


def _tell(run: "Run", as_json: bool) -> None:
    from kotha.api.scores import reached

    summary = run.summary
    told = None if as_json else reached(run)
    unmeasured = summary["stopped"] and summary["best_step"] is None
    hidden = {
        "validation",
        *(("best_step", "loss_nats") if unmeasured else ()),
        *(told.score.to_dict() if told else ()),
    }
    rows = [[label(name), readable(name, value)] for name, value in summary.items() if name not in hidden]
    for name, value in summary.get("validation", {}).items():
        rows.append([Message("validation {what}", what=label(name)), readable(name, value)])
    remarks = [Message("Report: {path} (open it in a browser)", path=run.path / "report.html")]
    if unmeasured:
        remarks.insert(
            0, Message("It was stopped before it was first measured, so it has no loss and no best step yet.")
        )
    if told:
        print_parts(told.table)
        if told.remark:
            tell(told.remark)
    show(summary, as_json, Table(str(run.path), [Message("summary"), ""], rows, remarks))
