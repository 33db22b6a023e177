"""Every sheet in Bangla has the same numbers and no English text except the names of matrices."""

import json
import re
import unicodedata
from functools import partial
from typing import Any

import pytest
import torch
from tests.course.worksheet.made import told_by
from tests.studio.test_words import BANNED

from kotha.course.worksheet.builtin_sheets import PAPERS, paper_sheet, student_sheet
from kotha.course.worksheet.model import read_head
from kotha.course.worksheet.page import sheet_view
from kotha.course.worksheet.sheet import Sheet
from kotha.i18n.catalogue import translate
from kotha.i18n.message import Text
from kotha.model.config import GPTConfig, Seq2SeqConfig
from kotha.model.family import build

SMALL: dict[str, Any] = {"d_model": 8, "n_heads": 2, "n_layers": 1, "vocab_size": 20, "context_length": 8}
# Text that stays Latin: the course's symbols, typed names, functions.
LATIN = {"e", "d", "q", "k", "argmax", "ReLU", "LayerNorm", "torch", "JSON", "X", "K", "V", "Q", "W"}


def of_model(config: Any, place: str) -> Sheet:
    torch.manual_seed(0)
    model = build(config).double()
    inputs = [torch.tensor([[1, 2, 3]])] * (2 if isinstance(config, Seq2SeqConfig) else 1)
    return read_head(model, inputs, place, 0, ("ক", "খ", "গ"), ("ক", "খ", "গ"))


SHEETS = {
    **{name: partial(paper_sheet, name, language="bn") for name in PAPERS},
    "drawn": lambda: student_sheet("4x6x3"),
    "classic": lambda: of_model(GPTConfig(**SMALL), "blocks.0.attention"),
    "modern": lambda: of_model(
        GPTConfig(**SMALL, n_kv_heads=1, norm="rms", qk_norm=True, positions="rotary"), "blocks.0.attention"
    ),
    "cross": lambda: of_model(Seq2SeqConfig(**SMALL), "decoder.0.cross"),
}


def english(sheet: Sheet, text: str) -> list[str]:
    """Return Latin words that are neither names on the sheet nor allowed everywhere."""
    titled = in_bangla(sheet.title).split()
    own = {*sheet.steps, *map(in_bangla, sheet.tokens), *map(in_bangla, sheet.key_tokens), sheet.place, *titled}
    own |= set(in_bangla(sheet.text).split())
    words = re.findall(r"[A-Za-z][A-Za-z_.0-9]*", text)
    return [word for word in words if word.strip(".") not in own | LATIN]


def in_bangla(text: Text) -> str:
    return translate(text, "bn")


@pytest.mark.parametrize("name", SHEETS)
def test_no_english_text_on_bangla_sheets(name: str) -> None:
    sheet = SHEETS[name]()
    titles = [in_bangla(step.title) for step in sheet.steps.values()]
    labels = [in_bangla(label) for step in sheet.steps.values() for label in (*step.rows, *step.columns)]
    for text in (*titles, *labels, in_bangla(sheet.lead), *map(in_bangla, sheet.remarks)):
        assert not english(sheet, text), text
        assert not [word for word in BANNED if word in text] and unicodedata.is_normalized("NFC", text)
    assert re.search("[\u0980-\u09ff]", in_bangla(sheet.title)) or name == "robot", sheet.title
    assert [text for text in titles if re.search("[\u0980-\u09ff]", text)], "titles have Bangla words"


@pytest.mark.parametrize("name", SHEETS)
def test_no_english_text_on_bangla_pages(name: str) -> None:
    view = sheet_view(SHEETS[name](), language="bn")
    result = told_by(view.html)
    titles = [step["title"]["bn"] for step in result["solved"]]
    assert titles == [in_bangla(step.title) for step in view.steps]
    for text in (result["title"]["bn"], result["lead"]["bn"], *result["remarks"]["bn"], *titles):
        assert not english(view.found, text), text
    assert '<html lang="bn">' in view.html
    assert json.dumps(view.to_dict(), allow_nan=False)
