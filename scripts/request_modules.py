"""Which modules one training passes: those whose functions run between ``kotha.train`` and its first optimizer step.

    python scripts/request_modules.py

A reader who follows a request reads these, so the list should be short. What only runs while a module is imported is
not counted: one training goes before, unwatched.
"""

import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

import kotha

# What a model, its text and messages are made of, whatever is asked of them.
BELOW = ("model", "text", "i18n")
SOURCE = str(Path(kotha.__file__).parent)


class Passed(list[str]):
    """Modules in the order in which they were first entered; ends with the first step of an optimizer."""

    ended = False

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """What Python calls at every call of a function."""
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
    """Prepare a little data, then watch one small training."""
    kotha.write_stories(folder / "s.jsonl", documents=60)
    tokenizer = kotha.train_tokenizer(folder / "s.jsonl", vocab_size=600)
    data = kotha.prepare(folder / "s.jsonl", tokenizer, folder / "data")
    kotha.train(data, preset="mini", steps=2, out=folder / "first", batch_size=2)  # imports all of it
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
