"""The proof of the page: the same questions to our model and to the file in a real browser, from disk, offline."""

import importlib.util
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from kotha.export.parity import ParityReport, not_checked, prompt_reader, with_lines, with_logits
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
    if importlib.util.find_spec("playwright") is None:
        return not_checked("web", "playwright")
    from playwright.sync_api import Error

    report = ParityReport("web")
    try:
        with opened_page(path) as page:
            report = replace(report, peer=f"Chromium {page.context.browser.version}, from disk, offline")
            return compared(report, model, tokenizer, page, lines)
    except Error as error:
        if report.peer is None and "Executable doesn't exist" in str(error):
            return ParityReport("web", remark=Message("not checked: no chromium on this machine"))
        return replace(report, refused=Message("the browser could not run it: {why}", why=str(error).splitlines()[0]))


def compared(report: ParityReport, model: GPT, tokenizer: Tokenizer, page: Any, lines: Sequence[str]) -> ParityReport:
    """Add what an opened page and our model have in common: token ids of lines, and logits."""
    ours = prompt_reader(tokenizer)
    theirs = dict(zip(lines, page.evaluate(_READ, list(lines)), strict=True))
    report = with_lines(report, ours, lambda line: theirs[line], lines)
    longest = max(map(ours, lines), key=len)[: min(_COMPARED, model.config.context_length)]
    with torch.no_grad():
        mine = model(torch.tensor([longest]))[0]  # (T, V)
    places = sorted({0, len(longest) // 2, len(longest) - 1})
    other = torch.tensor([page.evaluate(_SCORES, longest[: place + 1]) for place in places])
    return with_logits(report, [(mine[places], other)])
