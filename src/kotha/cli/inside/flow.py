"""``kotha inside flow``: a text through the whole model, station by station."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from kotha.cli.inside.opening import (
    Asked,
    Html,
    Image,
    Json,
    Second,
    Target,
    Text,
    headline,
    open_model,
    read_asked,
    tell,
)
from kotha.cli.terminal import print_json, results, table
from kotha.errors import UsageError

if TYPE_CHECKING:
    from kotha.bundle import Bundle
    from kotha.inside.flow.flow import Flow
    from kotha.inside.inputs import Reading

# The workshop's question 12a asks for this text.
_QUESTION = "বাংলাদেশ ব্যাংক সুদ বৃদ্ধি"


def flow(
    run: Annotated[Path | None, Parameter(help="A run folder (its best model), or a model folder.")] = None,
    /,
    *,
    preset: Annotated[
        str | None, Parameter(help="Instead of a run: a preset with fresh weights, for its shapes.")
    ] = None,
    text: Text = None,
    second: Second = None,
    target: Target = None,
    image: Image = None,
    html: Html = None,
    as_json: Json = False,
) -> None:
    """Follow a text through the model: shapes and figures at every station, and the answer."""
    from kotha.files import write_whole
    from kotha.inside.flow.flow import flow as follow
    from kotha.inside.flow.page import flow_page, rows
    from kotha.inside.inputs import name_piece

    if (run is None) == (preset is None):
        raise UsageError("name a run, or --preset NAME without one")
    asked = Asked(text=text, second=second, target=target, image=image)
    opened, reading = _read_run(run, asked) if run is not None else _read_preset(preset or "", asked)
    found = follow(opened.model, reading)
    tokenizer = opened.tokenizer
    spell = (lambda token: name_piece(tokenizer, token).text) if tokenizer is not None else str
    if html is not None:
        title = headline(asked, otherwise="noise" if reading.grid is not None else _QUESTION)
        write_whole(html, flow_page(found, f"{preset}: {title}" if preset else title, spell))
    if as_json:
        print_json(found.to_dict(spell))
        return
    if html is not None:
        results().print(f"{html}: {len(rows(found))} stations; open it in a browser", markup=False)
    else:
        _print(found, spell)


def _print(found: "Flow", spell: Callable[[int], str]) -> None:
    from kotha.inside.flow.page import rows

    console = results()
    header = ["station", "shape", "mean", "std", "min", "max", "length", "entropy, bits"]
    console.print(table("station by station", header, rows(found)))
    for answer in found.answers:
        best = [[spell(token), f"{share:.2%}"] for token, share in answer.best]
        console.print(table(answer.question, ["answer", "probability"], best))


def _read_run(run: Path, asked: Asked) -> tuple["Bundle", "Reading"]:
    from dataclasses import replace

    opened = open_model(run)
    if asked.text is None and asked.image is None and opened.tokenizer is not None:
        asked = replace(asked, text=_QUESTION)
    return opened, read_asked(opened, asked)


def _read_preset(name: str, asked: Asked) -> tuple["Bundle", "Reading"]:
    """A preset's shapes: fresh weights, the same each time."""
    import torch

    from kotha.bundle import Bundle
    from kotha.inside.inputs import read_image, read_without_tokenizer
    from kotha.inside.pictures import load_picture
    from kotha.model.config import ViTConfig
    from kotha.model.family import build
    from kotha.model.presets import preset

    if asked.second is not None or asked.target is not None:
        raise UsageError("--second and --target need a tokenizer; a preset has none, give --text alone")
    config = preset(name)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = build(config).eval()
        if isinstance(config, ViTConfig):
            noise = torch.rand(config.n_channels, config.image_size, config.image_size) * 2 - 1
            picture = noise if asked.image is None else load_picture(asked.image, config)
            return Bundle(model, None), read_image(model, picture)
    reading = read_without_tokenizer(model, _QUESTION if asked.text is None else asked.text)
    tell(reading)
    return Bundle(model, None), reading
