"""Every kind of invalid input, and the error message for it."""

import gzip
import io
import json
import re
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from kotha.errors import CorpusError, UsageError
from kotha.text.corpus.documents import read_documents
from kotha.text.corpus.problems import CorpusProblem
from kotha.text.corpus.sources import list_sources

ZSTD = zstandard.ZstdCompressor().compress


def parquet(**columns: object) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


BAD_UTF8 = pa.array([b"ok", b"a\xffb"], pa.binary()).view(pa.string())

CASES = {
    "utf8-txt": (
        "a.txt",
        b"one\n\ntwo\nth\xffree\n",
        "line 4: not valid UTF-8 (byte 0xff: invalid start byte)",
    ),
    "utf8-mark": ("a.txt", b"\xef\xbb\xbfa\xe0", "line 1: not valid UTF-8 (byte 0xe0: unexpected end of data)"),
    "utf8-csv": ("a.csv", b'text\nok\n"a\nb\xc3\n"', "line 4: not valid UTF-8 (byte 0xc3: invalid cont"),
    "utf8-parquet": (
        "a.parquet",
        parquet(text=BAD_UTF8),
        ": not a readable parquet file (In column 0: Invalid: Invalid UTF8",
    ),
    "utf16": ("a.txt", "কথা".encode("utf-16"), ": UTF-16 text; convert it first: iconv -f UTF-16 -t UTF-8"),
    "hidden-gzip": ("a.txt", gzip.compress(b"x"), ": gzip-compressed data; add the extension .gz to the file name"),
    "hidden-zstd": ("a.jsonl", ZSTD(b"x"), ": zstd-compressed data; add the extension .zst to the file name"),
    "hidden-parquet": ("a.csv", parquet(text=["x"]), ": a parquet file; add the extension .parquet to its name"),
    "nul": ("a.txt", b"one\n\ntwo\0\n", "line 3: a NUL character (is this a text file?)"),
    "empty": ("a.jsonl", b"", ": the file is empty"),
    "empty-mark": ("a.txt", b"\xef\xbb\xbf", ": the file is empty"),
    "empty-gz": ("a.txt.gz", gzip.compress(b""), ": the file is empty"),
    "zero-bytes-zst": ("a.txt.zst", b"", ": the file is empty"),
    "json": (
        "a.jsonl",
        '"x"\n{"a": "b" "text": 1}\n',
        "line 2: not valid JSON (Expecting ',' delimiter at column 11)",
    ),
    "json-brace": ("a.jsonl", '{"text": "b"\n', "line 1: not valid JSON (Expecting ',' delimiter at column 14)"),
    "json-deep": ("a.jsonl", "[" * 100_000, "line 1: not valid JSON (maximum recursion depth exceeded"),
    "json-digits": (
        "a.jsonl",
        '{"n": ' + "9" * 5000 + "}",
        "line 1: not valid JSON (Exceeds the limit (4300 digits)",
    ),
    "json-list": ("a.jsonl", "[1]", "line 1: expected an object with text, found [1]"),
    "json-null": ("a.jsonl", "null", "line 1: expected an object with text, found null"),
    "json-number": ("a.jsonl", '{"text": 5}', "line 1: the field 'text' is 5, not a string"),
    "json-none": ("a.jsonl", '{"text": null}', "line 1: the field 'text' is null, not a string"),
    "json-missing": (
        "a.jsonl",
        '{"id": 1, "txt": ""}',
        "line 1: no field 'text' among id, txt; try field='txt'",
    ),
    "json-no-near": ("a.jsonl", '{"id": 1}', "line 1: no field 'text' among id"),
    "json-no-fields": ("a.jsonl", "{}", "line 1: no field 'text' among none"),
    "json-surrogate": ("a.jsonl", r'{"text": "\udc00 x"}', r"line 1: the lone surrogate \udc00 is not a character"),
    "json-surrogate-name": ("a.jsonl", r'{"\ud800": 1}', r"line 1: no field 'text' among \ud800"),
    "csv-header": (
        "a.csv",
        "id,txt\n",
        ": no field 'text' among id, txt; try field='txt'; if the file has no header, use",
    ),
    "csv-twice": ("a.csv", "text,text\n", ": 2 columns are named 'text'; use a column number instead"),
    "csv-ragged": ("a.csv", 'id,text\n1,"a\nb"\n2\n', "line 4: the row has 1 cells, but the first row has 2"),
    "csv-quote": ("a.csv", 'text\n"a"b\n', "line 2: not valid CSV (',' expected after '\"')"),
    "csv-unclosed": ("a.csv", 'text\n"a\n', "line 2: not valid CSV (unexpected end of data)"),
    "csv-mac": ("a.csv", "text\ra\rb", "line 1: not valid CSV (new-line character seen in unquoted field"),
    "tsv-ragged": ("a.tsv", "id\ttext\n1\ta\tb\n", "line 2: the row has 3 cells, but the first row has 2"),
    "zst-cut": ("a.txt.zst", ZSTD(b"abc" * 999)[:-3], ": the zst data is truncated"),
    "zst-bad": ("a.txt.zst", b"no such thing", ": corrupt zst data (zstd decompressor er"),
    "zst-tail": ("a.txt.zst", ZSTD(b"abcd") + b"garbage", ": corrupt zst data (zstd"),
    "gz-cut": ("a.txt.gz", gzip.compress(b"abc", mtime=0)[:-3], ": the gz data is truncated"),
    "gz-bad": ("a.txt.gz", b"no such thing", ": corrupt gz data (Error -3 while"),
    "gz-sum": (
        "a.txt.gz",
        gzip.compress(b"abc")[:-8] + bytes(8),
        "(Error -3 while decompressing data: incorrect data c",
    ),
    "parquet-bad": ("a.parquet", b"no such thing", ": not a readable parquet file ("),
    "parquet-empty": ("a.parquet", b"", ": the file is empty"),
    "parquet-cut": ("a.parquet", parquet(text=["x"] * 99)[:-9], ": not a readable parquet file ("),
    "parquet-column": (
        "a.parquet",
        parquet(id=[1], txt=["x"]),
        ": no field 'text' among id, txt; try field='txt'",
    ),
    "parquet-type": ("a.parquet", parquet(text=[1, 2]), ": the column 'text' contains int64, not strings"),
    "parquet-nested": ("a.parquet", parquet(text=[["x"]]), ": the column 'text' contains list<"),
    "parquet-null": ("a.parquet", parquet(text=["x", None]), "row 2: 'text' is null, not a string"),
    "parquet-nul": ("a.parquet", parquet(text=["x", "\0"]), "row 2: a NUL character"),
}


@pytest.mark.parametrize(("name", "data", "words"), CASES.values(), ids=CASES.keys())
def test_the_message_for_every_invalid_file(tmp_path, name, data, words):
    path = tmp_path / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    problems: list[CorpusProblem] = []
    with pytest.raises(CorpusError, match=re.escape(words)) as caught:
        list(read_documents([path], on_problem=problems.append))
    assert str(caught.value).startswith(f"{path}")
    assert str(caught.value).endswith("; fix the input") and caught.value.skippable
    assert len(problems) == 1
    assert str(caught.value).startswith(str(problems[0]))
    str(caught.value).encode()
    problems.clear()
    documents = list(read_documents([path], errors="skip", on_problem=problems.append))
    assert problems
    assert all(document.text for document in documents)


def test_the_message_is_short_with_thousands_of_fields(tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps({f"field{i}" * 50: 1 for i in range(5000)}))
    with pytest.raises(CorpusError) as caught:
        list(read_documents([tmp_path / "a.jsonl"]))
    assert len(str(caught.value)) < 1000


def test_a_column_number_beyond_the_table(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n")
    for number in ("0", "3"):
        with pytest.raises(CorpusError, match=f"no column {number}: the first row has columns 1 to 2"):
            list(read_documents([tmp_path / "a.csv"], field=number))
    with pytest.raises(CorpusError, match="no field '9999"):
        list(read_documents([tmp_path / "a.csv"], field="9" * 5000))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"errors": "skp"}, "errors='skp' is not a valid choice; did you mean 'skip'?"),
        ({"field": ""}, "the field name is empty"),
    ],
)
def test_wrong_arguments_fail_at_the_call(tmp_path, options, words):
    with pytest.raises(UsageError, match=re.escape(words)):
        read_documents([tmp_path], **options)


def test_one_path_instead_of_a_list():
    with pytest.raises(UsageError, match=r"paths='a\.txt' is a single path; pass a list of paths"):
        read_documents("a.txt")


def test_a_file_that_cannot_be_opened_or_read(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "b.txt").write_text("b")
    plain = Path.open

    def refuse(self: Path, *args: object) -> object:
        if self.name == "a.txt":
            raise PermissionError(13, "Permission denied")
        return plain(self, *args)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(CorpusError, match=r"a\.txt: cannot be opened \(Permission denied\); fix the input"):
        list(read_documents([tmp_path]))
    assert [d.text for d in read_documents([tmp_path], errors="skip")] == ["b"]


def test_an_io_error_while_reading(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("a")

    class Failing(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(Path, "open", lambda *_: Failing())
    with pytest.raises(CorpusError, match=r"a\.txt: cannot be read \(Input/output error\)"):
        list(read_documents([tmp_path / "a.txt"]))


@pytest.mark.parametrize(
    ("module", "name", "words"),
    [
        ("pyarrow", "a.parquet", "reading parquet needs pyarrow; install it with: "),
        ("huggingface_hub", "hf:a/b", "the hub needs huggingface_hub; install it with: "),
    ],
)
def test_a_missing_library_names_the_extra(tmp_path, monkeypatch, module, name, words):
    (tmp_path / "a.parquet").write_bytes(parquet(text=["x"]))
    monkeypatch.setitem(sys.modules, module, None)
    path = name if name.startswith("hf:") else tmp_path / name
    with pytest.raises(CorpusError, match=re.escape(words)):
        list(read_documents([path], errors="skip"))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a.json", "a .json file is a single value and cannot be streamed; write one object per line: jq -c"),
        (
            "a.pdf",
            "unknown file extension '.pdf'; supported: .txt, .jsonl, .ndjson, .csv, .tsv, .parquet; all but parquet",
        ),
        ("a", "unknown file extension ''; supported:"),
        ("a.parquet.gz", "a compressed parquet file cannot be read; decompress it first"),
        ("a.gz", "unknown file extension ''; supported:"),
    ],
)
def test_unsupported_extensions(tmp_path, name, words):
    (tmp_path / name).write_text("x")
    with pytest.raises(CorpusError, match=re.escape(f"{tmp_path / name}: {words}")):
        list_sources([tmp_path / name])
