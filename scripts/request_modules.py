"""List the modules used in a training run: those whose functions run between ``kotha.train`` and its first step.

    python scripts/request_modules.py

To understand a training run, a reader has to read these modules, so the list should be short. Code that runs only on
import is not counted, because another training run precedes the observed one.
"""

import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

import kotha

# Modules for models, text and messages, which every request uses.
BELOW = ("model", "text", "i18n")
SOURCE = str(Path(kotha.__file__).parent)


class Passed(list[str]):
    """Records modules in the order of their first use, until the first step of an optimizer."""

    ended = False

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Record the module of a function; Python calls this for each function call."""
        code = frame.f_code
        if event != "call" or self.ended:
            return
        if code.co_name == "step" and "optim" in code.co_filename:
            self.ended = True
        elif code.co_filename.startswith(SOURCE):
            name = Path(code.co_filename).relative_to(SOURCE).as_posix()
            if name not in self:
                self.append(name)


def modules_of_a_training(folder: Path) -> list[str]:
    """Prepare a small data folder, then observe a short training run."""
    kotha.write_stories(folder / "s.jsonl", documents=60)
    tokenizer = kotha.train_tokenizer(folder / "s.jsonl", vocab_size=600)
    data = kotha.prepare(folder / "s.jsonl", tokenizer, folder / "data")
    kotha.train(data, preset="mini", steps=2, out=folder / "first", batch_size=2)  # imports everything
    passed = Passed()
    sys.setprofile(passed)
    try:
        kotha.train(data, preset="mini", steps=2, out=folder / "run", batch_size=2)
    finally:
        sys.setprofile(None)
    return passed


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        found = modules_of_a_training(Path(place))
    below = [name for name in found if name.split("/")[0] in BELOW]
    print(*found, f"{len(found)} modules, {len(found) - len(below)} without {', '.join(BELOW)}", sep="\n")
