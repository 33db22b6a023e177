"""The proof of the page: the same questions to our model and to the file in a real browser, from disk, offline."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from kotha.export.parity import ParityReport, prompt_reader
from kotha.i18n.message import Message
from kotha.model.gpt import GPT
from kotha.text.tokenizer.tokenizer import Tokenizer

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_COMPARED = 24
_SCORES = "async (ids) => Array.from((await kotha.source.scores(ids, ids.length)).logits)"
_READ = "async (lines) => (await kotha.source.read(lines)).map((line) => line.ids)"


@contextmanager
def opened_page(path: Path) -> Iterator[Any]:
    """A page opened from disk in a browser that has no network, its model ready; for whoever compares or measures."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        program = next(filter(None, map(shutil.which, _BROWSERS)), None)
        browser = playwright.chromium.launch(executable_path=program)
        try:
            page = browser.new_context(offline=True).new_page()
            page.set_default_timeout(120_000)
            page.goto(path.resolve().as_uri())
            page.evaluate("kotha.opened")
            yield page
        finally:
            browser.close()


def check_page(model: GPT, tokenizer: Tokenizer, path: Path, lines: Sequence[str]) -> ParityReport:
    """Compare a page with the model that it was made from, its weights rounded as the page has them."""
    report = ParityReport.of("web", "playwright")
    if report.peer is None:
        return report
    from playwright.sync_api import Error

    try:
        with opened_page(path) as page:
            report.peer = f"Chromium {page.context.browser.version}, from disk, offline"
            compare_page(report, model, tokenizer, page, lines)
    except Error as error:
        if "Executable doesn't exist" in str(error):
            return ParityReport("web", remark=Message("not checked: no chromium on this machine"))
        report.refused = Message("the browser could not run it: {why}", why=str(error).splitlines()[0])
    return report


@torch.no_grad()
def compare_page(report: ParityReport, model: GPT, tokenizer: Tokenizer, page: Any, lines: Sequence[str]) -> None:
    """Add what an opened page and our model have in common: token ids of lines, and logits."""
    ours = prompt_reader(tokenizer)
    theirs = dict(zip(lines, page.evaluate(_READ, list(lines)), strict=True))
    report.compare_lines(ours, theirs.__getitem__, lines)
    longest = max(map(ours, lines), key=len)[: min(_COMPARED, model.config.context_length)]
    places = sorted({0, len(longest) // 2, len(longest) - 1})
    other = torch.tensor([page.evaluate(_SCORES, longest[: place + 1]) for place in places])
    report.compare_logits([(model(torch.tensor([longest]))[0, places], other)])
