"""The door to the browser: one HTML file that writes, with no server and no network.

Matrices go as int8 with a scale for each row, rounded as ``bundle.py`` stores them, so a model that is stored so loses
nothing more. The page reads them as numbers, not as rounded products: it computes what the library computes with the
same weights in float32, up to the order of sums, by a kernel in WebAssembly (SIMD). ``check.py`` asks a real browser,
where there is one.
"""

from dataclasses import replace
from pathlib import Path
from typing import cast

from kotha.artifacts.model_folder import Bundle
from kotha.errors import KothaError, UsageError
from kotha.export.card import About
from kotha.export.obstacles import UnsupportedError
from kotha.export.parity import ParityReport, our_side, with_remarks
from kotha.export.targets import USUAL, ExportSettings
from kotha.export.web.card import describe_card
from kotha.export.web.check import check_page
from kotha.export.web.page import whole_page
from kotha.export.web.vocabulary import describe_vocabulary
from kotha.export.web.weights import pack, rounded
from kotha.i18n.message import Message, Option, Text
from kotha.model.config import ModelConfig
from kotha.model.gpt import GPT
from kotha.storage import bundled
from kotha.storage.atomic import write_page
from kotha.storage.destinations import PAGE_ENDINGS, check_file_place
from kotha.storage.status import is_there

FILE_NAME = "model.html"


def opens_in_browser(config: ModelConfig) -> Text:
    """As what a config opens there; families that do not write a text on are refused."""
    if config.family != "gpt":
        because = Message("family={family}: the page writes a text on, which a gpt does", family=config.family)
        raise UnsupportedError("no page: {because}", because=because)
    return Message("opens in any browser, as one file")


def export_web(bundle: Bundle, out: Path, settings: ExportSettings = USUAL) -> ParityReport:
    """Write one file (at ``out``, or into a folder ``out`` as model.html), and compare it in a browser."""
    if settings.weights not in (None, "int8"):
        raise UsageError("weights={weights!r}: the page has int8 weights, and no others", weights=settings.weights)
    opens_in_browser(bundle.config)
    if bundle.tokenizer is None:
        raise KothaError("this model folder has no tokenizer, and a page needs one; train or save it with one")
    path = out if out.suffix in PAGE_ENDINGS else out / FILE_NAME
    if is_there(check_file_place(path)) and not settings.overwrite:
        raise KothaError(
            "{path} exists; choose another place, or replace it with {overwrite}",
            path=path,
            overwrite=Option("overwrite", True),
        )
    ours = our_side(bundle)
    model = rounded(cast("GPT", ours.model))
    packed = pack(model)
    about = About() if settings.run is None else About.of(settings.run)
    description = {
        "name": "model" if settings.run is None else Path(bundled.title(settings.run)).name,
        "model": bundle.config.to_dict(),
        "vocabulary": describe_vocabulary(bundle.tokenizer),
        "arrays": packed.arrays,
        "bytes": len(packed.content),
        "card": describe_card(bundle, about, settings.license),
    }
    write_page(path, whole_page(description, packed.squeezed()))
    report = replace(check_page(model, bundle.tokenizer, path, settings.lines), weights="int8")
    return with_remarks(
        report, Message("{n:,} bytes", n=path.stat().st_size), Message("compared with the same int8 weights as float32")
    )
