"""Export to a web page: one HTML file that generates text in a browser, without a server or a network.

Matrices are stored as int8 with a scale for each row, as in an int8 model folder, so an int8 model loses no further
precision. The page dequantizes them. Except for the order of sums, its WebAssembly (SIMD) kernel performs the same
computation as Kotha with these weights in float32. The worker is created from the script itself (``blob:``), and the
script assembles the WebAssembly code, so nothing is fetched. The export is verified in a browser that opens the file
from disk, offline.
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
from kotha.artifacts.own_text import own_opening
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

# The alignment of arrays in bytes; a browser reads float32 only at multiples of 4.
_ALIGNED = 8


def _opens(config: ModelConfig) -> Text:
    """Return how the exported page is opened; raise an error for model families that do not continue text."""
    if config.family != "gpt":
        because = Message("family={family}: the page generates text, which requires a gpt model", family=config.family)
        raise UnsupportedError("cannot export to a web page: {because}", because=because)
    return Message("opens in any browser as a single file")


def _export(job: ExportJob) -> ParityReport:
    """Write the page and verify it in a browser."""
    model = rounded(cast("GPT", our_side(job.bundle).model))
    arrays, weights = pack(model)
    description = {
        "name": "model" if job.run is None else Path(bundled.title(job.run)).name,
        "model": job.bundle.config.to_dict(),
        "vocabulary": describe_vocabulary(job.tokenizer),
        "arrays": arrays,
        "bytes": len(weights),
        "card": describe_card(job.bundle, job.about),
        "opening": own_opening(job.run, job.tokenizer),  # None: the usual one in the page's language
        "language": job.about.language,
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
    """Pack all arrays into one byte string, and return the offset of each; a tied head is not stored twice."""
    arrays: list[dict[str, Any]] = []
    content = bytearray()

    def put(name: str, tensor: Tensor) -> None:
        content.extend(b"\0" * (-len(content) % _ALIGNED))
        kind = str(tensor.dtype).removeprefix("torch.")
        arrays.append({"name": name, "type": kind, "shape": list(tensor.shape), "start": len(content)})
        content.extend(tensor.contiguous().cpu().numpy().tobytes())

    for name, weight in unique_weights(model).items():
        if weight.dim() == 2:
            quantized, scale = round_rows(weight)
            put(name, quantized)
            put(f"{name}.scale", scale)
        else:
            put(name, weight.float())
    return arrays, bytes(content)


def squeezed(content: bytes) -> str:
    """Compress bytes to base64 text, deterministically."""
    return base64.b64encode(gzip.compress(content, compresslevel=9, mtime=0)).decode()


@torch.no_grad()
def rounded(model: GPT) -> GPT:
    """Round a model's matrices to the page's int8 values, in place, for the comparison."""
    for weight in model.parameters():
        if weight.dim() == 2:
            weight.copy_(widen_rows(*round_rows(weight)))
    return model


# -- the page ---------------------------------------------------------------------------------------------------------


def whole_page(description: dict[str, Any], weights: str) -> str:
    """Return the HTML of the page."""
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
    """Return the model card for the page, JSON-serializable; unknown values are None."""
    assert bundle.tokenizer is not None, "a web page requires a tokenizer"
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
    """Open a page from disk in an offline browser and wait until its model is loaded."""
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
    """Compare a page with the model from which it was exported, with weights rounded in the same way."""
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
    """Compare an opened page with the model, and add the result to a report: token ids of lines, and logits."""
    ours = prompt_reader(tokenizer)
    theirs = dict(zip(lines, page.evaluate(_READ, list(lines)), strict=True))
    report.compare_lines(ours, theirs.__getitem__, lines)
    longest = max(map(ours, lines), key=len)[: min(_COMPARED, model.config.context_length)]
    positions = sorted({0, len(longest) // 2, len(longest) - 1})
    logits = torch.tensor([page.evaluate(_SCORES, longest[: position + 1]) for position in positions])
    report.compare_logits([(model(torch.tensor([longest]))[0, positions], logits)])
