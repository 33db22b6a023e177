"""Views of every kind show the same result as data, as an offline page, and in a notebook frame."""

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.inside.small_models import TEXT, small

from kotha.course.worksheet.builtin_sheets import workshop_sheet
from kotha.course.worksheet.model import model_sheet
from kotha.course.worksheet.page import sheet_view
from kotha.errors import KothaError, UsageError
from kotha.inside.attention import attention_view
from kotha.inside.embeddings import Embeddings, embeddings_view
from kotha.inside.flow import flow_view
from kotha.inside.heads.measuring import TextSource
from kotha.inside.heads.study import heads_view
from kotha.inside.inputs import ModelInput, headline, read
from kotha.inside.lens import lens_view
from kotha.inside.view import View


def given(text: str = TEXT) -> ModelInput:
    return replace(read(small("gpt").model, small("gpt").tokenizer, text), title=headline(text))


VIEWS: dict[str, Any] = {
    "attention": lambda: attention_view(small("gpt"), given()),
    "flow": lambda: flow_view(small("gpt"), given()),
    "lens": lambda: lens_view(small("gpt"), given()),
    "heads": lambda: heads_view(small("gpt"), TextSource(text=TEXT * 3)),
    "worksheet": lambda: sheet_view(model_sheet(small("gpt"), TEXT, head=1)),
    "workshop": lambda: sheet_view(workshop_sheet()),
    "embeddings": lambda: embeddings_view(Embeddings(small("gpt").model, small("gpt").tokenizer), ["আজ"]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_has_data_a_page_and_a_notebook_frame(name: str, tmp_path: Path) -> None:
    view: View[Any] = VIEWS[name]()
    json.dumps(view.to_dict(), allow_nan=False)
    assert view.save(tmp_path / "new" / "page.html").read_text(encoding="utf-8") == view.html
    markup = re.sub(r"<script>.*?</script>", "", view.html, flags=re.DOTALL)  # allowed by the content security policy
    assert not re.search(r'(src|href)="(?!data:)|url\((?!data:)|@import', markup)
    frame = view._repr_html_()
    assert frame.startswith("<iframe ") and 'sandbox="allow-scripts"' in frame and "width:100%" in frame
    inner = re.fullmatch(r'<iframe [^>]* srcdoc="([^"]*)"></iframe>', frame)
    assert inner is not None and html.unescape(inner[1]) == view.html, "the page stays inside its frame"
    assert repr(str(view.title)) in repr(view) and len(repr(view)) < 500


def test_a_page_is_saved_as_html(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a\.png has the wrong extension for an HTML page; use .*a\.html"):
        View("x", 1, lambda: "<p>", dict).save(tmp_path / "a.png")
    assert not list(tmp_path.iterdir())


def test_the_page_is_built_once_on_first_access(tmp_path: Path) -> None:
    made: list[int] = []
    view = View("x", 1, lambda: made.append(1) or "<p>", dict)  # type: ignore[func-returns-value]
    assert made == []
    assert view.html == view.html == "<p>" and made == [1]
    (tmp_path / "taken").mkdir()
    with pytest.raises(KothaError, match="is a folder; specify a file in it"):
        view.save(tmp_path / "taken")


def test_remarks_are_part_of_the_view() -> None:
    assert any("its context" in str(each) for each in attention_view(small("gpt"), given(TEXT * 9)).remarks)


def test_options_are_validated_immediately() -> None:
    with pytest.raises(UsageError, match="tokens=3 is too small; use at least 9"):
        TextSource(text="আজ", tokens=3)
