"""Files in every format, and files with problems."""

import json
from pathlib import Path

import pytest

from kotha.errors import CorpusError, UsageError
from kotha.retrieval.documents import IndexOptions, list_files, read_file
from kotha.text.corpus.problems import CorpusProblem

LONG = "নদীর ধারে একটি গ্রাম আছে, সেখানে মিনা থাকে। "
PAGE = f"""<html><head><title>x</title><style>p {{ color: red }}</style></head><body>
<script>var নদী = 1;</script><h1>নদী</h1>
<p>{LONG * 12}</p><p>ক<b>ল</b>ম &amp; খাতা</p></body>"""


def read(file: Path, **how: object) -> list[tuple[str, str]]:
    return [(each.text, each.place) for each in read_file(file, IndexOptions(**how))]


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("odd", ["<![1]>", "<![>", "<![ক[খ]]>", "<![CDATA[x]]>", "<![if IE]>"])
def test_html_that_browsers_ignore_is_skipped(tmp_path: Path, odd: str) -> None:
    [(text, _)] = read(written(tmp_path / "a.html", f"<p>আগে {odd}</p><p>পরে</p>"))
    assert text.startswith("আগে") and text.endswith("পরে")


def test_html_yields_text_only_with_headings_kept_with_paragraphs(tmp_path: Path) -> None:
    first, second = read(written(tmp_path / "a.html", PAGE))
    assert first == (f"নদী\n\n{(LONG * 12).strip()}", "line 2")
    assert second == ("কলম & খাতা", "line 3")


def test_markdown_layout_is_removed(tmp_path: Path) -> None:
    text = "# নদী\n\n- [মিনা](http://x) **বড়** `মেয়ে`\n\n```\ncode_here\n```\n| a | b |\n|---|---|\n" + LONG * 12
    [(found, place)] = read(written(tmp_path / "a.md", text))
    assert place == "line 1"
    assert found.startswith("নদী\n\nমিনা বড় মেয়ে\n\n") and "```" not in found and "code_here" in found


def test_each_record_is_a_document(tmp_path: Path) -> None:
    rows = "\n".join(json.dumps({"body": text}, ensure_ascii=False) for text in ("মা", "বাবা"))
    assert read(written(tmp_path / "a.jsonl", rows), field="body") == [("মা", "line 1"), ("বাবা", "line 2")]


def test_folders_are_walked_and_unreadable_files_reported(tmp_path: Path) -> None:
    for name in ("b.md", "a.txt", "c.exe", ".hidden.txt", "d/e.html"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        written(tmp_path / name, "নদী")
    problems: list[CorpusProblem] = []
    assert [file.name for file in list_files([tmp_path], problems.append)[0]] == ["a.txt", "b.md", "e.html"]
    assert sorted(str(problem.reason) for problem in problems)[0] == "skipped: hidden"
    with pytest.raises(CorpusError, match=r"nothing\.md does not exist"):
        list_files([tmp_path / "nothing.md"])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.md", b"\xff\xfe broken", "not valid UTF-8"),
        ("a.html", b"<script>1</script>", "the file contains no text"),
        ("a.md", b"", "the file contains no text"),
    ],
)
def test_a_bad_file_is_an_error_or_skipped(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(CorpusError, match=message):
        read(file)
    assert read(file, errors="skip") == []


def pdf_of(text: bytes) -> bytes:
    """A page whose content stream shows these bytes, written by hand from the format's specification."""
    return pdf_that_shows(b"(" + text + b") Tj" if text else b"")


def pdf_that_shows(operations: bytes) -> bytes:
    """A page whose content stream has these operations."""
    content = b"BT /F1 12 Tf 72 720 Td " + operations + b" ET" if operations else b""
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        b"/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
    ]
    made, places = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, part)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    start = len(made)
    return made + (
        b"xref\n0 5\n0000000000 65535 f \n"
        + table
        + b"trailer << /Size 5 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % start
    )


def test_a_pdf_is_read_by_page_and_a_scanned_one_is_reported(tmp_path: Path) -> None:
    pytest.importorskip("pypdf", reason="needs the extra kotha[pdf]")
    file = tmp_path / "a.pdf"
    file.write_bytes(pdf_of(b"The river Padma"))
    assert read(file) == [("The river Padma", "page 1")]
    for content, said in (
        (pdf_of(b""), "scanned pages need OCR first"),
        (b"%PDF-1.4 no", "not a readable PDF"),
    ):
        file.write_bytes(content)
        with pytest.raises(CorpusError, match=said):
            read(file)


def test_pdf_text_uses_actual_text_instead_of_glyphs(tmp_path: Path) -> None:
    pytest.importorskip("pypdf", reason="needs the extra kotha[pdf]")
    file = tmp_path / "a.pdf"
    # The vowel sign of দে is drawn before its consonant; the conjunct in স্ত্রী is one glyph. Adjacent glyphs touch.
    file.write_bytes(
        pdf_that_shows(
            b"/Span << /ActualText <FEFF09A609C7> >> BDC (e) Tj 6.672 0 Td (d) Tj EMC 6.672 0 Td (x) Tj 20 0 Td "
            b"/Span << /ActualText <FEFF09B809CD09A409CD09B009C0> >> BDC [(s) -10 (i)] TJ EMC ( and on) Tj EMC"
        )
    )
    assert read(file) == [("দেx স্ত্রী and on", "page 1")]


def test_without_pypdf_the_error_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pypdf", None)
    file = tmp_path / "a.pdf"
    file.write_bytes(pdf_of(b"x"))
    with pytest.raises(CorpusError, match=r"pip install 'pypdf"):
        read(file)


@pytest.mark.parametrize(
    "part",
    ["<b", "<a b", "<a b=", '<a b="', "<!--", "<!", "</", "<a b='\"", "<script>", "<svg><nav></svg ", "&#9", "<"],
)
def test_hostile_html_is_read_in_linear_time(part: str, tmp_path: Path) -> None:
    text = "<p>নদীর ধারে গ্রাম।</p>" + part * (200_000 // len(part))  # takes minutes in quadratic time
    [(found, place)] = read(written(tmp_path / "a.html", text))
    assert found.startswith("নদীর ধারে গ্রাম।") and place == "line 1"


@pytest.mark.parametrize(
    "part", ["[", "[a](", "[a](()", "![", "**a ", "*a", "__a _", "`a", "|", "| a", "-", " ", "1", "[a](b)", "<b"]
)
def test_hostile_markdown_is_read_in_linear_time(part: str, tmp_path: Path) -> None:
    for end in ("", "x"):
        text = "নদীর ধারে গ্রাম।\n\n" + part * (200_000 // len(part)) + end
        assert read(written(tmp_path / "a.md", text))[0][0].startswith("নদীর ধারে গ্রাম।")


def test_html_is_cut_as_in_a_browser(tmp_path: Path) -> None:
    page = (
        "<p title='a > b' x=\"</p>\">ক < খ</p><!-- <p>গ</p> --><!-->ঘ<SCRIPT>'</p>' <b></Script >"
        "<p/>ঙ<img alt=x>চ<b></b>ছ&lt;&#2453;&#99999999999;<? x ?></>\n<style>জ</style><br>ঝ<i"
    )
    assert read(written(tmp_path / "a.html", page)) == [("ক < খ\n\nঘ\n\nঙচছ<ক\ufffd\n\nঝ", "line 1")]


def test_nested_markdown_loses_its_marks(tmp_path: Path) -> None:
    text = "[![ছবি](a.png)](b) [নদী](http://x/নদী_(জল)) **মো*টা** __ক_খ__ *গ* `ঘ` ২ * ৩ * ৪\n| ক | খ |\n|:--|---|\n***\n"
    [(found, _)] = read(written(tmp_path / "a.md", text))
    assert found == "ছবি নদী মো*টা ক_খ গ ঘ ২ * ৩ * ৪\n| ক | খ |"


def test_a_page_larger_than_the_limit_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.html"
    with file.open("wb") as out:
        out.truncate((16 << 20) + 1)
    with pytest.raises(CorpusError, match="16,777,217 bytes exceed the limit of 16,777,216 for one document; split"):
        read(file)


def test_a_passage_has_an_upper_size() -> None:
    with pytest.raises(UsageError, match="passage_length=100000000 is too long; use at most 10,000 characters"):
        IndexOptions(passage_length=100_000_000)
    assert IndexOptions(passage_length=10_000).passage_length == 10_000
