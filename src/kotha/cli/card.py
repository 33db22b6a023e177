"""``kotha card``: what a model says of itself."""

from kotha import box
from kotha.cli.flags import Run
from kotha.errors import KothaError
from kotha.files.looks import is_file, is_there


def card(run: Run = box.FOLDER, /) -> None:
    """Show the card of a model: what it has read, under which licence, how good it is, and what it is not for."""
    file = run / box.CARD_FILE
    if not is_there(run):
        raise KothaError(f"there is no {run}; name a run folder or a model folder")
    if not is_file(file):
        name = box.title(run)
        raise KothaError(f"{name} has no card ({box.CARD_FILE}); `kotha export {name} --to hf --out FOLDER` writes one")
    print(file.read_text(encoding="utf-8"), end="")
