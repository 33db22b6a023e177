"""``kotha train``: from a data folder to a run folder."""

import os
import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

from kotha.cli.flags import More, flag, from_toml, from_words
from kotha.cli.stopping import StoppedError
from kotha.cli.terminal import print_json, results, table
from kotha.cli.training_display import TrainingDisplay, readable

Number = Annotated[int | None, flag("Overrides what is chosen.")]


def train(
    data: Annotated[Path, flag("A data folder, made by `kotha prepare`.")],
    /,
    *,
    out: Annotated[Path, flag("The run folder to make, or to go on with.")],
    minutes: Annotated[float | None, flag("How long it may take; 10 where nothing else says it.")] = None,
    preset: Annotated[str | None, flag("Exact name of a preset; left out, the sizes are chosen.")] = None,
    recipe: Annotated[str, flag("course, classic or modern.")] = "modern",
    steps: Number = None,
    checkpoint_every: Number = None,
    seed: Number = None,
    teacher: Annotated[tuple[Path, ...], flag("A trained model to learn from too; may be given again.")] = (),
    config: Annotated[Path | None, flag("A TOML file with more settings.")] = None,
    set_: More = (),
    resume: Annotated[bool, flag("Go on from the last checkpoint in --out.")] = False,
    shard: Annotated[bool, flag("Under torchrun: each process keeps a part (FSDP).")] = False,
    tensorboard: Annotated[bool, flag("Also write events for TensorBoard.")] = False,
    prompt: Annotated[str, flag("What the samples begin with.")] = "",
    as_json: Annotated[bool, flag("The summary as JSON on stdout.", name="--json")] = False,
) -> None:
    """Train a model; stop with Ctrl-C, go on with --resume.

    Sizes, batch and rates follow from the data and the time: `kotha train data --minutes 10 --out run`. A gpt preset
    learns next tokens, a bert preset masked words; with --teacher a gpt also learns from models that you trained
    before (distillation), and from several it becomes better than each. On several GPUs or machines:
    `torchrun --nproc-per-node 8 -m kotha train …`, with --shard for models that one cannot hold.
    """
    flags = {"steps": steps, "checkpoint_every": checkpoint_every, "seed": seed}
    given: dict[str, Any] = {name: value for name, value in flags.items() if value is not None}
    if teacher:
        given["teachers"] = [str(each.absolute()) for each in teacher]  # who goes on may stand elsewhere
    given = {**from_toml(config), **from_words(set_), **given}
    with ExitStack() as stack:
        display = stack.enter_context(TrainingDisplay(speaks=os.environ.get("RANK", "0") == "0"))
        from kotha.api.run import sampler
        from kotha.runs import RunFolder
        from kotha.text.shards import Dataset
        from kotha.train.distributed import joined
        from kotha.train.settings import TrainRequest
        from kotha.train.start import train_run

        dataset, folder, ranks = Dataset(data), RunFolder(out), _ranks(shard)
        stack.enter_context(joined(ranks))
        if tensorboard and ranks.is_first:
            from kotha.train.show.tensorboard import TensorBoard

            display.also = stack.enter_context(TensorBoard(out / "tensorboard"))
        summary = train_run(
            dataset,
            folder,
            TrainRequest(preset=preset, recipe=recipe, minutes=minutes, changes=given),
            resume=resume or (ranks.restarts > 0 and folder.exists),  # torchrun starts again where a process died
            sampler=sampler(dataset, prompt),
            on_event=display.show,
            on_remark=display.say,
            ranks=ranks,
        )
    if not ranks.is_first:
        return
    _tell(out, summary, as_json)
    if summary["stopped"]:
        go_on = shlex.join(["kotha", "train", str(data), "--out", str(out), "--resume"])
        raise StoppedError(f"stopped at step {summary['steps']:,} and saved; go on with: {go_on}", alone=ranks.alone)


def _tell(out: Path, summary: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(summary)
        return
    rows = [[name.replace("_", " "), readable(name, value)] for name, value in summary.items()]
    results().print(table(str(out), ["summary", ""], rows))
    results().print(f"Report: {out / 'report.html'} (open it in a browser)", markup=False)


def _ranks(shard: bool) -> Any:
    """Where torchrun has put this process; it says so in the environment."""
    from kotha.train.distributed import Ranks

    world = os.environ.get("WORLD_SIZE", "1")
    names = {"RANK": "0", "WORLD_SIZE": world, "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": world}
    names["TORCHELASTIC_RESTART_COUNT"] = "0"
    return Ranks(*(int(os.environ.get(name, default)) for name, default in names.items()), shard=shard)
