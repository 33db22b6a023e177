"""Reading documents and pairs: every format and compression, skipped items, constant memory."""

import csv
import gzip
import io
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from tests.conftest import SHARED_DATA

from kotha.errors import CorpusError, UsageError
from kotha.text.corpus.documents import read_documents, read_records
from kotha.text.corpus.problems import CorpusProblem
from kotha.text.corpus.sources import list_sources

DOCUMENTS = [
    "আমার সোনার বাংলা, আমি তোমায় ভালোবাসি।",
    'তিনি বললেন, "ঠিক আছে"; তারপর চলে গেলেন।',
    "র‍্যাব ও ক্ষমা: দুই লাইন\nএক নথিতে",
    "১২৩ টাকা — 50% ছাড়!",
    "শেষ নথি 🙂",
]

needs_shared = pytest.mark.skipif(not SHARED_DATA.exists(), reason="the shared development data is not on this machine")


def as_txt(texts: list[str]) -> bytes:
    return "\n\n".join(texts).encode() + b"\n"


def as_jsonl(texts: list[str]) -> bytes:
    rows = [{"id": i, "text": text} if i else text for i, text in enumerate(texts)]
    return "".join(json.dumps(row, ensure_ascii=i % 2 == 0) + "\n" for i, row in enumerate(rows)).encode()


def as_csv(texts: list[str]) -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out).writerows([["id", "text"], *([i, text] for i, text in enumerate(texts))])
    return out.getvalue().encode()


def as_tsv(texts: list[str]) -> bytes:
    return "".join(f"{a}\t{b}\n" for a, b in [("id", "text"), *enumerate(texts)]).encode()


def as_parquet(texts: list[str], kind: pa.DataType | None = None) -> bytes:
    out = io.BytesIO()
    table = pa.table({"id": range(len(texts)), "text": pa.array(texts, pa.string()).cast(kind or pa.string())})
    pq.write_table(table, out, row_group_size=2)
    return out.getvalue()


WRITERS: dict[str, Callable[[list[str]], bytes]] = {
    "txt": as_txt,
    "jsonl": as_jsonl,
    "ndjson": as_jsonl,
    "csv": as_csv,
    "tsv": as_tsv,
    "parquet": as_parquet,
}
COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data,
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}
KINDS = [(f, c) for f in WRITERS for c in COMPRESSORS if f != "parquet" or not c]


def texts_for(format: str) -> list[str]:
    """Sample texts; a tsv cell cannot contain a line break."""
    return [text.replace("\n", " ") for text in DOCUMENTS] if format == "tsv" else DOCUMENTS


def put(folder: Path, name: str, data: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def read(path: Path, **options: object) -> list[str]:
    return [document.text for document in read_documents([path], **options)]  # type: ignore[arg-type]


@pytest.mark.parametrize(("format", "compression"), KINDS)
def test_every_format_and_compression_gives_the_same_documents(tmp_path, format, compression):
    data = COMPRESSORS[compression](WRITERS[format](texts_for(format)))
    path = put(tmp_path, f"news.{format}{compression}", data)
    sizes_read: list[int] = []
    documents = list(read_documents([path], on_bytes=sizes_read.append))
    assert [document.text for document in documents] == texts_for(format)
    assert {document.source for document in documents} == {str(path)}
    assert sum(sizes_read) == len(data) == list_sources([path])[0].size


@pytest.mark.parametrize(
    ("format", "positions"),
    [
        ("txt", [1, 3, 5, 8, 10]),
        ("jsonl", [1, 2, 3, 4, 5]),
        ("csv", [2, 3, 4, 6, 7]),
        ("tsv", [2, 3, 4, 5, 6]),
        ("parquet", [1, 2, 3, 4, 5]),
    ],
)
def test_positions_are_first_lines_or_rows_from_one(tmp_path, format, positions):
    path = put(tmp_path, f"a.{format}", WRITERS[format](texts_for(format)))
    assert [document.position for document in read_documents([path])] == positions


@pytest.mark.parametrize("compression", [".gz", ".zst"])
def test_concatenated_files_are_read_to_the_end(tmp_path, compression):
    squeeze = COMPRESSORS[compression]
    data = squeeze(b"one\n\n") + squeeze(b"") + squeeze(b"two\n")
    assert read(put(tmp_path, f"a.txt{compression}", data)) == ["one", "two"]


def test_gzip_padding_and_zstd_skippable_frames_are_skipped(tmp_path):
    skippable = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"
    assert read(put(tmp_path, "a.txt.gz", gzip.compress(b"one") + bytes(600))) == ["one"]
    assert read(put(tmp_path, "a.txt.zst", skippable + COMPRESSORS[".zst"](b"one"))) == ["one"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_parquet_strings_of_every_kind(tmp_path, kind):
    assert read(put(tmp_path, "a.parquet", as_parquet(DOCUMENTS, kind))) == DOCUMENTS


def test_blank_lines_of_any_white_space_separate_txt_documents(tmp_path):
    path = put(tmp_path, "a.txt", "\ufeff\n \t\r\nএক\r\nদুই\r\n\u00a0\n\n\nতিন")
    assert read(path) == ["এক\nদুই", "তিন"]


def test_utf8_mark_is_dropped_at_the_start_only(tmp_path):
    assert read(put(tmp_path, "a.jsonl", b"\xef\xbb\xbf" + as_jsonl(["এক", "\ufeffদুই"]))) == ["এক", "\ufeffদুই"]


def test_documents_without_text_are_not_yielded(tmp_path):
    path = put(tmp_path, "a.jsonl", '{"text": ""}\n\n{"text": " \\n\\u00a0"}\n"x"\n')
    assert read(path) == ["x"]


def test_long_txt_documents_are_cut_at_a_line_end(tmp_path):
    by_lines = "এক দুই\nতিন চার\nপাঁচ\n"
    assert read(put(tmp_path, "lines.txt", by_lines), max_document_bytes=40) == ["এক দুই\nতিন চার", "পাঁচ"]


@pytest.mark.parametrize("format", ["txt", "jsonl", "csv", "tsv"])
def test_a_line_over_the_limit_is_skipped(tmp_path, format):
    path = put(tmp_path, f"a.{format}", WRITERS[format](["short", "x" * 1000, "after"]))
    problems: list[CorpusProblem] = []
    assert read(path, max_document_bytes=100, errors="skip", on_problem=problems.append) == ["short", "after"]
    assert len(problems) == 1
    assert "is longer than 100 bytes" in str(problems[0].reason)


def test_a_line_just_at_the_limit_is_read(tmp_path):
    for end in ("", "\n", "\r\n"):
        path = put(tmp_path, "a.jsonl", '"' + "x" * 30 + '"' + end)
        assert read(path, max_document_bytes=32) == ["x" * 30]


def test_csv_cells_longer_than_the_modules_own_limit(tmp_path):
    long = "ক" * 200_000
    assert read(put(tmp_path, "a.csv", as_csv(["x", long]))) == ["x", long]


def test_an_unclosed_csv_quote_costs_no_more_than_the_limit(tmp_path):
    rows = 'text\n"never closed\n' + "some words\n" * 20
    problems: list[CorpusProblem] = []
    left = read(put(tmp_path, "a.csv", rows), errors="skip", max_document_bytes=64, on_problem=problems.append)
    assert str(problems[0]).endswith("a.csv, line 2: the row is longer than 64 bytes (an unclosed quote?)")
    assert set(left) == {"some words"}


def test_tsv_quotes_are_text(tmp_path):
    path = put(tmp_path, "a.tsv", '"Who?" "Me."\t"কে?" "আমি।"\n')
    assert read(path, field="2") == ['"কে?" "আমি।"']


def test_columns_by_number_mean_that_there_is_no_header_row(tmp_path):
    path = put(tmp_path, "a.csv", "one,এক\ntwo,দুই\n")
    assert read(path, field="2") == ["এক", "দুই"]
    records = list(read_records([path], ("1", "2")))
    assert records == [(str(path), (("one", "এক"), 1)), (str(path), (("two", "দুই"), 2))]


@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl", "parquet"])
def test_pairs_of_every_format(tmp_path, format):
    rows = [("one", "এক"), ("two", "দুই"), ("", "তিন")]
    if format == "jsonl":
        data = "".join(json.dumps({"en": en, "bn": bn}) + "\n" for en, bn in rows).encode()
    elif format == "parquet":
        out = io.BytesIO()
        pq.write_table(pa.table({"en": [en for en, _ in rows], "bn": [bn for _, bn in rows]}), out)
        data = out.getvalue()
    else:
        mark = {"csv": ",", "tsv": "\t"}[format]
        data = "".join(f"{a}{mark}{b}\n" for a, b in [("en", "bn"), *rows]).encode()
    path = put(tmp_path, f"p.{format}", data)
    records = read_records([path], ("bn", "en"))
    assert [values for _, (values, _) in records] == [("এক", "one"), ("দুই", "two"), ("তিন", "")]


def test_pairs_cannot_be_read_from_txt(tmp_path):
    with pytest.raises(UsageError, match=r"a\.txt: a txt file has no fields; use csv, tsv, jsonl or par"):
        read_records([put(tmp_path, "a.txt", "x")], ("a", "b"))


def test_stdin_is_txt(monkeypatch):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(as_txt(DOCUMENTS))))
    assert [d.text for d in read_documents(["-"])] == DOCUMENTS


BROKEN = b'{"text": "a"}\n{"text": "b\xff"}\n{"text": \n{"text": "c\\ud800"}\n{"text": "d\\u0000"}\n{"text": "e"}\n'


def test_skip_drops_invalid_documents(tmp_path):
    path = put(tmp_path, "a.jsonl", BROKEN)
    problems: list[CorpusProblem] = []
    assert read(path, errors="skip", on_problem=problems.append) == ["a", "e"]
    assert [problem.line for problem in problems] == [2, 3, 4, 5]


def test_bad_bytes_in_a_csv_row_drop_only_that_row(tmp_path):
    path = put(tmp_path, "a.csv", b'id,text\n1,a\n2,"b\n\xff"\n\xff,c\n4,d\n')
    assert read(path, errors="skip") == ["a", "d"]


def test_stop_yields_what_came_before(tmp_path):
    documents = read_documents([put(tmp_path, "a.jsonl", BROKEN)])
    assert next(documents).text == "a"
    with pytest.raises(CorpusError, match="line 2: not valid UTF-8"):
        next(documents)


@pytest.mark.parametrize("compression", [".gz", ".zst"])
def test_a_corrupt_file_does_not_end_the_corpus(tmp_path, compression):
    whole = "".join(f"নথি {i} {i * 7919 % 1000}\n\n" for i in range(20_000)).encode()
    data = COMPRESSORS[compression](whole)
    put(tmp_path, f"a.txt{compression}", data[: len(data) * 9 // 10])
    put(tmp_path, "b.txt", "b")
    problems: list[CorpusProblem] = []
    texts = read(tmp_path, errors="skip", on_problem=problems.append)
    assert texts[0] == "নথি 0 0"
    assert texts[-1] == "b"
    assert 1000 < len(texts) < 20_000
    assert f"the {compression[1:]} data is truncated" in str(problems[0])


def test_memory_stays_flat(tmp_path):
    """30 MB in four forms (one a gzip bomb, one a single line) and an endless row are read within 3 MB of memory."""
    text, size = "কখগঘ " * 200, 30 << 20
    row = json.dumps(text, ensure_ascii=False).encode() + b"\n"
    put(tmp_path, "lines.jsonl", row * (size // len(row)))
    put(tmp_path, "endless.jsonl", b"x" * size)
    put(tmp_path, "endless.txt", "ক".encode() * (size // 3))
    put(tmp_path, "bomb.txt.gz", gzip.compress(bytes(size), 1))
    put(tmp_path, "cells.csv", b"text\n" + b'"\n",' * (size // 400))
    for path in sorted(tmp_path.iterdir()):
        tracemalloc.start()
        for _ in read_documents([path], errors="skip", max_document_bytes=1 << 18):
            pass
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 3 << 20, f"{path.name} took {peak:,} bytes"


def test_a_zstd_bomb_is_decompressed_in_bounded_steps(tmp_path):
    path = put(tmp_path, "bomb.jsonl.zst", zstandard.ZstdCompressor().compress(bytes(256 << 20)))
    assert path.stat().st_size < 10_000
    tracemalloc.start()
    assert read(path, errors="skip", max_document_bytes=1 << 18) == []
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 << 20


@needs_shared
def test_the_shared_news_and_pairs_have_their_documented_sizes():
    news = [document.source for document in read_documents([SHARED_DATA / "news"])]
    assert (sum("train" in n for n in news), sum("validation" in n for n in news)) == (7270, 383)
    pairs = list(read_records([SHARED_DATA / "parallel/en-bn.tsv.zst"], ("en", "bn")))
    assert len(pairs) == 22_456
    assert pairs[0][1][0][0] == "I have to go to sleep."
