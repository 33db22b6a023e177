"""``kotha train``: from a data folder to a run folder."""

import sys
import tomllib
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.live import Live
from rich.text import Text

from kotha.cli.terminal import notes, print_json, results, table
from kotha.errors import ConfigError, UsageError

Number = Annotated[int | None, Parameter(help="Overrides the recipe.")]


def train(
    data: Annotated[Path, Parameter(help="A data folder, made by `kotha prepare`.")],
    /,
    *,
    out: Annotated[Path, Parameter(help="The run folder to make, or to go on with.")],
    preset: Annotated[str, Parameter(help="Exact name of a gpt preset; its vocabulary follows the data.")] = "pocket",
    recipe: Annotated[str, Parameter(help="course, classic or modern.")] = "modern",
    steps: Number = None,
    checkpoint_every: Number = None,
    seed: Number = None,
    config: Annotated[Path | None, Parameter(help="A TOML file with more settings.")] = None,
    set_: Annotated[tuple[str, ...], Parameter(name="--set", negative="", help="One more setting: NAME=VALUE.")] = (),
    resume: Annotated[bool, Parameter(negative="", help="Go on from the last checkpoint in --out.")] = False,
    prompt: Annotated[str, Parameter(help="What the samples begin with.")] = "",
    as_json: Annotated[bool, Parameter(name="--json", negative="", help="The summary as JSON on stdout.")] = False,
) -> None:
    """Train a model; stop with Ctrl-C, go on with --resume."""
    from kotha.generate.plain import write
    from kotha.model.config import GPTConfig
    from kotha.model.presets import preset as model_of
    from kotha.text.shards import Dataset
    from kotha.train.loop import Training
    from kotha.train.recipes import recipe as settings_of
    from kotha.train.run_folder import RunFolder

    dataset, folder = Dataset(data), RunFolder(out)
    if resume:
        model, settings = folder.read()
        folder.check_data(dataset)
    else:
        flags = {"steps": steps, "checkpoint_every": checkpoint_every, "seed": seed}
        given = {name: value for name, value in flags.items() if value is not None}
        settings = settings_of(recipe, **{**_from_toml(config), **_from_words(set_), **given})
        model = model_of(preset)
        if isinstance(model, GPTConfig):
            dropout = {} if settings.dropout is None else {"dropout": settings.dropout}
            model = model.replace(vocab_size=dataset.tokenizer.vocab_size, **dropout)
    with _Display(settings.steps) as display:
        training = Training(
            model,
            settings,
            dataset,
            folder,
            sampler=lambda trained: write(trained, dataset.tokenizer, prompt, tokens=60),
            on_event=display.show,
        )
        if resume:
            display.say(f"going on from step {training.resume():,}")
        else:  # only now: settings that cannot be trained leave no folder behind
            folder.start(model, settings, dataset)
        arithmetic = training.arithmetic
        display.say(f"{arithmetic.precision} on {arithmetic.device} ({arithmetic.reason})")
        summary = training.run()
    if as_json:
        print_json(summary)
        return
    rows = [[name.replace("_", " "), _readable(value)] for name, value in summary.items()]
    results().print(table(str(out), ["summary", ""], rows))


def _readable(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.4f}" if value < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _from_toml(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"--config {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error


def _from_words(words: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"--set {word}: write NAME=VALUE, such as learning_rate=1e-3")
        try:
            found[name] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[name] = None if value == "none" else value
    return found


class _Display:
    """One line that tells how a run goes, and a line that stays for each evaluation."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._console = notes()
        self._live = Live(Text(""), console=self._console, transient=True, refresh_per_second=4)
        self._validation = ""

    def __enter__(self) -> "_Display":
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def say(self, text: str) -> None:
        print(f"kotha: {text}", file=sys.stderr)

    def show(self, event: dict[str, Any]) -> None:
        if "validation" in event:
            found = event["validation"]
            self._validation = (
                f"{found['bits_per_byte']:.4f} bits/byte, {found['bits_per_character']:.4f} bits/character"
            )
            sample = " ".join((event.get("sample") or "").split())
            self._console.print(f"step {event['step']:>6,}  validation {self._validation}  [dim]{sample[:110]}[/]")
            return
        rate = event["tokens_per_second"]
        left = (self._steps - event["step"]) * event["tokens"] / max(1, event["step"]) / max(1e-9, rate)
        line = f"step {event['step']:,}/{self._steps:,}  loss {event['loss_nats']:.3f}  {rate:,.0f} tokens/s  "
        self._live.update(Text(line + f"{left / 60:.1f} min left"))
