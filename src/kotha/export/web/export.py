"""The door to the browser: one HTML file that writes, with no server and no network.

Matrices go as int8 with a scale for each row, rounded as ``bundle.py`` stores them, so a model that is stored so loses
nothing more. The page reads them as numbers, not as rounded products: it computes what the library computes with the
same weights in float32, up to the order of sums, by a kernel in WebAssembly (SIMD). ``check.py`` asks a real browser,
where there is one.
"""

from pathlib import Path
from typing import cast

from kotha.export.exporter import Exporter, ExportJob
from kotha.export.obstacles import UnsupportedError
from kotha.export.parity import ParityReport, our_side, with_remarks
from kotha.export.web.card import describe_card
from kotha.export.web.check import check_page
from kotha.export.web.page import whole_page
from kotha.export.web.vocabulary import describe_vocabulary
from kotha.export.web.weights import pack, rounded
from kotha.i18n.message import Message, Text
from kotha.model.config import ModelConfig
from kotha.model.gpt import GPT
from kotha.storage import bundled
from kotha.storage.atomic import write_page
from kotha.storage.destinations import PAGE_ENDINGS


def opens_in_browser(config: ModelConfig) -> Text:
    """As what a config opens there; families that do not write a text on are refused."""
    if config.family != "gpt":
        because = Message("family={family}: the page writes a text on, which a gpt does", family=config.family)
        raise UnsupportedError("no page: {because}", because=because)
    return Message("opens in any browser, as one file")


def _export(job: ExportJob) -> ParityReport:
    """Write the page, and compare it in a browser."""
    model = rounded(cast("GPT", our_side(job.bundle).model))
    packed = pack(model)
    description = {
        "name": "model" if job.settings.run is None else Path(bundled.title(job.settings.run)).name,
        "model": job.bundle.config.to_dict(),
        "vocabulary": describe_vocabulary(job.tokenizer),
        "arrays": packed.arrays,
        "bytes": len(packed.content),
        "card": describe_card(job.bundle, job.about, job.license),
    }
    write_page(job.path, whole_page(description, packed.squeezed()))
    report = check_page(model, job.tokenizer, job.path, job.settings.lines)
    told = Message("compared with the same int8 weights as float32")
    return with_remarks(report, Message("{n:,} bytes", n=job.path.stat().st_size), told)


export_web = Exporter(
    opens=opens_in_browser,
    export=_export,
    weights=("int8",),
    file_name="model.html",
    endings=PAGE_ENDINGS,
    needs_tokenizer=Message("a page"),
)
