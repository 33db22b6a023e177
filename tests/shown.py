"""Run a page's commands in order, and compare their outputs with those on the page.

With ``KOTHA_WRITE_OUTPUTS=1`` (``make outputs``) the actual outputs are written to the page; the test still fails, so
that a person reviews the change.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from scripts.book.examples import Example, difference, examples, rewrite, run

_IN_BANGLA = " --language bn"


class Pages:
    """A page and its Bangla version, while their commands run."""

    def __init__(self, page: Path, shorter: Mapping[str, str] | None = None) -> None:
        self.page, self.shorter = page, shorter or {}
        self.twin = page.with_name(page.name.replace(".md", ".bn.md"))
        self.differences: list[str] = []
        self._outputs: dict[Path, dict[int, str]] = {page: {}, self.twin: {}}

    def check(self) -> None:
        """Run the commands and compare their outputs. A command may fail only if the page shows its error.

        A command that the Bangla page shows with ``--language bn`` and an output is run again in Bangla.
        """
        shown_in_bangla: dict[str, list[Example]] = {}
        for example in _of(self.twin) if self.twin.exists() else []:
            if example.shown is not None:
                shown_in_bangla.setdefault(example.command.removesuffix(_IN_BANGLA), []).append(example)
        for example in _of(self.page):
            printed = self._run(example)
            self._compare(self.page, example, printed)
            twins = shown_in_bangla.get(example.command)
            if twins:
                twin = twins.pop(0)
                self._compare(self.twin, twin, self._run(twin) if twin.command.endswith(_IN_BANGLA) else printed)
        unseen = [each.command for left in shown_in_bangla.values() for each in left]
        assert unseen == [], f"{self.page.name} lacks commands whose output {self.twin.name} shows"
        for path, outputs in self._outputs.items():
            if outputs and os.environ.get("KOTHA_WRITE_OUTPUTS"):
                rewrite(path, outputs)
        assert self.differences == [], "\n\n".join(self.differences)

    def _run(self, example: Example) -> str:
        quick = example.command
        for printed, shorter in self.shorter.items():
            quick = re.sub(printed, shorter, quick)
        code, output = run(quick)
        shows_an_error = bool((example.shown or "").strip("…\n"))
        assert code == 0 or shows_an_error, f"{example.command}\n{output}"
        return output

    def _compare(self, path: Path, example: Example, printed: str) -> None:
        if example.shown is not None and (found := difference(example, printed)):
            self.differences.append(f"{path.name}, {found}")
            self._outputs[path][example.line] = printed


def _of(page: Path) -> list[Example]:
    return [each for each in examples(page.read_text(encoding="utf-8")) if each.command.startswith("kotha ")]
