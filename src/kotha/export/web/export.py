"""The door to the browser: one HTML file that writes, with no server and no network.

Matrices go as int8 with a scale for each row, rounded as a model folder stores them, so a model that is stored so loses
nothing more. The page reads them as numbers, not as rounded products: it computes what the library computes with the
same weights in float32, up to the order of sums, by a kernel in WebAssembly (SIMD). The worker is made from the script
itself (``blob:``), its kernel is WebAssembly that the script assembles, and nothing is ever fetched. A real browser
opens it from disk, offline, and is asked what our model is asked.
"""

import base64
import gzip
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from kotha.artifacts.model_folder import Bundle, unique_weights
from kotha.artifacts.run_folder import mapping
from kotha.errors import KothaError
from kotha.export.card import About
from kotha.export.exporter import Exporter, ExportJob
from kotha.export.parity import ParityReport, our_side, prompt_reader
from kotha.export.web.vocabulary import describe_vocabulary
from kotha.export.weight_names import UnsupportedError
from kotha.i18n.message import Message, Text
from kotha.model.config import ModelConfig
from kotha.model.gpt import GPT
from kotha.model.rounding import round_rows, widen_rows
from kotha.report.built import words
from kotha.report.page import escape
from kotha.report.single_file import SinglePage
from kotha.storage import bundled
from kotha.storage.atomic import write_page
from kotha.storage.output_paths import PAGE_ENDINGS
from kotha.text.tokenizer.tokenizer import Tokenizer

# Where an array may begin: a browser reads float32 at multiples of 4 only.
_ALIGNED = 8


def _opens(config: ModelConfig) -> Text:
    """As what a config opens there; families that do not write a text on are refused."""
    if config.family != "gpt":
        because = Message(
            "family={family}: the page continues text, which only a gpt model can do", family=config.family
        )
        raise UnsupportedError("cannot export to a web page: {because}", because=because)
    return Message("opens in any browser, as one file")


def _export(job: ExportJob) -> ParityReport:
    """Write the page, and compare it in a browser."""
    model = rounded(cast("GPT", our_side(job.bundle).model))
    arrays, weights = pack(model)
    description = {
        "name": "model" if job.run is None else Path(bundled.title(job.run)).name,
        "model": job.bundle.config.to_dict(),
        "vocabulary": describe_vocabulary(job.tokenizer),
        "arrays": arrays,
        "bytes": len(weights),
        "card": describe_card(job.bundle, job.about),
    }
    write_page(job.path, whole_page(description, squeezed(weights)))
    report = check_page(model, job.tokenizer, job.path, job.lines)
    size = Message("{n:,} bytes", n=job.path.stat().st_size)
    report.remarks += [size, Message("compared with the same int8 weights, converted to float32")]
    return report


PAGE = Exporter(
    opens=_opens,
    export=_export,
    weights=("int8",),
    file_name="model.html",
    endings=PAGE_ENDINGS,
    needs_tokenizer=Message("a web page"),
)


# -- weights ----------------------------------------------------------------------------------------------------------


def pack(model: GPT) -> tuple[list[dict[str, Any]], bytes]:
    """All arrays in one string of bytes, and where each begins; every weight once, a tied head is not written again."""
    places: list[dict[str, Any]] = []
    content = bytearray()

    def put(name: str, tensor: Tensor) -> None:
        content.extend(b"\0" * (-len(content) % _ALIGNED))
        kind = str(tensor.dtype).removeprefix("torch.")
        places.append({"name": name, "type": kind, "shape": list(tensor.shape), "start": len(content)})
        content.extend(tensor.contiguous().cpu().numpy().tobytes())

    for name, weight in unique_weights(model).items():
        if weight.dim() == 2:
            whole, scale = round_rows(weight)
            put(name, whole)
            put(f"{name}.scale", scale)
        else:
            put(name, weight.float())
    return places, bytes(content)


def squeezed(content: bytes) -> str:
    """Bytes as a page holds them; the same for the same weights."""
    return base64.b64encode(gzip.compress(content, compresslevel=9, mtime=0)).decode()


@torch.no_grad()
def rounded(model: GPT) -> GPT:
    """Round a model's matrices as the page has them, in place: what the page is compared with."""
    for weight in model.parameters():
        if weight.dim() == 2:
            weight.copy_(widen_rows(*round_rows(weight)))
    return model


# -- the page ---------------------------------------------------------------------------------------------------------


def whole_page(description: dict[str, Any], weights: str) -> str:
    """The file's text."""
    return SinglePage(
        built="model",
        title=description["name"],
        data=description,
        without_script="".join(f"<p>{escape(each)}</p>" for each in words("webmodel")["noscript"].values()),
        scripts="'wasm-unsafe-eval'",
        rules=("worker-src blob:",),
        after=f'\n<script type="text/plain" id="weights">{weights}</script>',
    ).html()


def describe_card(bundle: Bundle, about: About) -> dict[str, Any]:
    """What the page tells of its model, ready for JSON; None where something is not known."""
    assert bundle.tokenizer is not None, "a page has a tokenizer"
    bits, read = about.summary.get("bits_per_byte"), about.summary.get("tokens")
    data = mapping(about.config, "data").get("path")
    return {
        "parameters": sum(parameter.numel() for parameter in bundle.model.parameters()),
        "tokenizer": bundle.tokenizer.kind,
        "license": about.license,
        "bits_per_byte": bits if isinstance(bits, float) else None,
        "tokens_read": read if isinstance(read, int) else None,
        "data": Path(data).name if isinstance(data, str) else None,
        "own": about.own_card,
    }


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
            return ParityReport("web", remarks=[Message("not checked: chromium is not installed")])
        raise KothaError(
            "the browser could not run {path}: {why}", path=path, why=str(error).splitlines()[0]
        ) from error
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
