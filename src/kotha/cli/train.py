"""``kotha train``: from a data folder to a run folder."""

import os
import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from kotha.cli.settings import from_toml, from_words
from kotha.cli.stopping import StoppedError
from kotha.cli.terminal import print_json, results, table
from kotha.cli.training_display import TrainingDisplay
from kotha.errors import UsageError

Number = Annotated[int | None, Parameter(help="Overrides the recipe.")]


def train(
    data: Annotated[Path, Parameter(help="A data folder, made by `kotha prepare`.")],
    /,
    *,
    out: Annotated[Path, Parameter(help="The run folder to make, or to go on with.")],
    preset: Annotated[str, Parameter(help="Exact name of a preset; its vocabulary follows the data.")] = "pocket",
    recipe: Annotated[str, Parameter(help="course, classic or modern.")] = "modern",
    steps: Number = None,
    minutes: Annotated[float | None, Parameter(help="As many steps as this machine does in this time.")] = None,
    checkpoint_every: Number = None,
    seed: Number = None,
    config: Annotated[Path | None, Parameter(help="A TOML file with more settings.")] = None,
    set_: Annotated[tuple[str, ...], Parameter(name="--set", negative="", help="One more setting: NAME=VALUE.")] = (),
    resume: Annotated[bool, Parameter(negative="", help="Go on from the last checkpoint in --out.")] = False,
    shard: Annotated[bool, Parameter(negative="", help="Under torchrun: each process keeps a part (FSDP).")] = False,
    tensorboard: Annotated[bool, Parameter(negative="", help="Also write events for TensorBoard.")] = False,
    prompt: Annotated[str, Parameter(help="What the samples begin with.")] = "",
    as_json: Annotated[bool, Parameter(name="--json", negative="", help="The summary as JSON on stdout.")] = False,
) -> None:
    """Train a model; stop with Ctrl-C, go on with --resume.

    A gpt preset learns next tokens, a bert preset masked words. On several GPUs or machines:
    `torchrun --nproc-per-node 8 -m kotha train …`, with --shard for models that one cannot hold.
    """
    from kotha.runs import RunFolder
    from kotha.text.shards import Dataset
    from kotha.train.distributed import joined
    from kotha.train.start import resume_run, start_run

    flags = {"steps": steps, "checkpoint_every": checkpoint_every, "seed": seed}
    given = {name: value for name, value in flags.items() if value is not None}
    given = {**from_toml(config), **from_words(set_), **given}
    if minutes is not None and (minutes <= 0 or "steps" in given or resume):
        raise UsageError("--minutes takes a positive number, for a new run, and no --steps beside it")
    dataset, folder, place = Dataset(data), RunFolder(out), _place()
    with ExitStack() as stack:
        ranks = stack.enter_context(joined(place, shard))
        display = stack.enter_context(TrainingDisplay(speaks=ranks.is_first))
        listeners = [display.show, *_tensorboard(stack, out, tensorboard and ranks.is_first)]
        about: dict[str, Any] = {
            "sampler": _sampler(dataset.tokenizer, prompt),
            "on_event": lambda event: [listen(event) for listen in listeners],
            "ranks": ranks,
        }
        if resume or _was_restarted(place, out):
            training = resume_run(dataset, folder, given, **about)
            display.say(f"going on from step {training.progress.step:,}")
        else:
            model, settings = _settings(dataset, preset, recipe, given, minutes)
            training = start_run(model, settings, dataset, folder, timed=True, **about)
        display.expect(training.config.steps)
        display.say(f"{training.arithmetic.precision} on {training.arithmetic.device} ({training.arithmetic.reason})")
        summary = training.run()
    if ranks.is_first:
        _tell(out, summary, as_json)
    if ranks.is_first and training.interrupts.asked:
        go_on = shlex.join(["kotha", "train", str(data), "--out", str(out), "--resume"])
        raise StoppedError(f"stopped at step {summary['steps']:,} and saved; go on with: {go_on}", alone=ranks.alone)


def _was_restarted(place: Any, out: Path) -> bool:
    """Whether torchrun has started us again, because a process had died, in the middle of a run."""
    from kotha.runs import CONFIG

    return place.restarts > 0 and (out / CONFIG).exists()


def _tell(out: Path, summary: dict[str, Any], as_json: bool) -> None:
    """How it went; and the report, which is written here."""
    from kotha.train.show.report import write_report

    report = write_report(out)
    if as_json:
        print_json(summary)
        return
    rows = [[name.replace("_", " "), _readable(value)] for name, value in summary.items()]
    results().print(table(str(out), ["summary", ""], rows))
    results().print(f"Report: {report} (open it in a browser)", markup=False)


def _settings(dataset: Any, preset: str, recipe: str, given: dict[str, Any], minutes: float | None) -> Any:
    """The model and the settings that were asked for."""
    from kotha.cli.sizes import take_sizes
    from kotha.model.config import TextConfig
    from kotha.model.presets import preset as model_of
    from kotha.train.plan.minutes import settings_for_minutes
    from kotha.train.recipes import recipe as settings_of

    model, given = take_sizes(model_of(preset), given)
    settings = settings_of(recipe, **given)
    if isinstance(model, TextConfig):
        dropout = {} if settings.dropout is None else {"dropout": settings.dropout}
        model = model.replace(vocab_size=dataset.tokenizer.vocab_size, **dropout)
    if minutes is not None:
        settings = settings_for_minutes(model, settings, minutes, fixed=given)
    return model, settings


def _sampler(tokenizer: Any, prompt: str) -> Any:
    """What writes a sample: only a GPT can."""
    from kotha.generate.plain import write
    from kotha.model.gpt import GPT

    return lambda model: write(model, tokenizer, prompt, tokens=60) if isinstance(model, GPT) else None


def _tensorboard(stack: ExitStack, out: Path, wanted: bool) -> list[Any]:
    if not wanted:
        return []
    from kotha.train.show.tensorboard import TensorBoard

    return [stack.enter_context(TensorBoard(out / "tensorboard"))]


def _place() -> Any:
    """Where torchrun has put this process; it says so in the environment."""
    from kotha.train.distributed import Place

    world = os.environ.get("WORLD_SIZE", "1")
    names = {"RANK": "0", "WORLD_SIZE": world, "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": world}
    names["TORCHELASTIC_RESTART_COUNT"] = "0"
    return Place(*(int(os.environ.get(name, default)) for name, default in names.items()))


def _readable(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.4f}" if value < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
