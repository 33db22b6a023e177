"""``kotha card``: what a model says of itself."""

from kotha.cli.flags import Run
from kotha.errors import KothaError
from kotha.storage import bundled
from kotha.storage.status import is_file, is_there


def card(run: Run = bundled.FOLDER, /) -> None:
    """Show the card of a model: what it has read, under which licence, how good it is, and what it is not for."""
    file = run / bundled.CARD_FILE
    if not is_there(run):
        raise KothaError("there is no {run}; name a run folder or a model folder", run=run)
    if not is_file(file):
        name = bundled.title(run)
        raise KothaError(
            "{name} has no card ({card_file}); `kotha export {name} --to hf --out FOLDER` writes one",
            name=name,
            card_file=bundled.CARD_FILE,
        )
    print(file.read_text(encoding="utf-8"), end="")
