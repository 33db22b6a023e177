"""Preparing a data folder: deterministic, clean, safe to interrupt."""

import io
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from tests.conftest import SHARED_DATA
from tests.launching import Launcher
from tests.text.conftest import trained

from kotha.errors import CorpusError, DataError, KothaError, UsageError
from kotha.text import prepare as prepare_module
from kotha.text import shards
from kotha.text.prepare import PrepareOptions, end_of, prepare
from kotha.text.shards import Dataset
from kotha.text.stories.corpus import stories
from kotha.text.tokenizer.tokenizer import Tokenizer

DOCUMENTS = 120


@pytest.fixture(scope="module")
def texts() -> list[str]:
    source = stories(seed=11)
    return [next(source).text for _ in range(DOCUMENTS)]


@pytest.fixture
def corpus(tmp_path: Path, texts: list[str]) -> Path:
    return write(tmp_path / "stories.jsonl", texts)


@pytest.fixture
def tokenizer() -> Tokenizer:
    return trained("unigram")


def write(path: Path, texts: list[str]) -> Path:
    path.write_text("".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts), encoding="utf-8")
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_every_document_is_in_exactly_one_split(corpus: Path, texts, tokenizer, tmp_path: Path) -> None:
    report = prepare([corpus], tokenizer, tmp_path / "data", PrepareOptions(leak_threshold=None))
    data = Dataset(tmp_path / "data")
    assert (report.train_documents, report.validation_documents) == (114, 6)
    train = [tokenizer.decode(ids) for ids in data["train"]]
    held_out = [tokenizer.decode(ids) for ids in data["validation"]]
    normalized = [tokenizer.normalize(text) for text in texts]
    assert sorted(train + held_out) == sorted(normalized)
    assert train == [text for text in normalized if text not in held_out], "the order of reading is kept"
    assert report.train_tokens == data["train"].info.tokens
    assert report.train_bytes == sum(len(text.encode()) for text in train)


def test_any_number_of_workers_writes_the_same_bytes(corpus: Path, tokenizer, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("kotha.text.clean.leakage._BATCH_CHARACTERS", 2000)
    for workers in (1, 2):
        prepare([corpus], tokenizer, tmp_path / f"by{workers}", PrepareOptions(workers=workers))
    assert contents(tmp_path / "by1") == contents(tmp_path / "by2")


def test_the_seed_decides_what_is_held_out(corpus: Path, tokenizer, tmp_path: Path) -> None:
    for name, seed in {"a": 0, "b": 0, "c": 1}.items():
        prepare([corpus], tokenizer, tmp_path / name, PrepareOptions(seed=seed))
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert (tmp_path / "a" / "validation-00000.bin").read_bytes() != (
        tmp_path / "c" / "validation-00000.bin"
    ).read_bytes()


def test_validation_may_be_a_file(corpus: Path, texts, tokenizer, tmp_path: Path) -> None:
    held_out = write(tmp_path / "held-out.jsonl", ["একেবারে অন্য একটা কথা, যা কোনো গল্পে নেই।"])
    report = prepare([corpus], tokenizer, tmp_path / "data", PrepareOptions(validation=held_out))
    assert (report.train_documents, report.validation_documents, report.leaked) == (DOCUMENTS, 1, 0)


def test_near_copies_of_validation_documents_are_kept_out_of_training(corpus, texts, tokenizer, tmp_path: Path) -> None:
    words = texts[3].split()
    near = " ".join([*words[:-2], "শেষে", "বদল"])
    quoted = texts[5] + "\n" + texts[4]
    held_out = write(tmp_path / "held-out.jsonl", [near, texts[5]])
    more = write(tmp_path / "more.jsonl", [quoted])
    report = prepare([corpus, more], tokenizer, tmp_path / "data", PrepareOptions(validation=held_out))
    kept = {tokenizer.decode(ids) for ids in Dataset(tmp_path / "data")["train"]}
    assert report.leaked == 3
    assert not kept & {tokenizer.normalize(text) for text in (texts[3], texts[5], quoted)}
    careless = PrepareOptions(validation=held_out, leak_threshold=None, overwrite=True)
    assert prepare([corpus, more], tokenizer, tmp_path / "data", careless).leaked == 0


def test_duplicates_are_removed_and_counted(texts, tokenizer, tmp_path: Path) -> None:
    near = " ".join([*texts[0].split()[:-1], "অন্যকিছু"])
    corpus = write(tmp_path / "copies.jsonl", [*texts, texts[0], texts[1] + "  ", near])
    found = {}
    for duplicates in ("keep", "exact", "near"):
        options = PrepareOptions(duplicates=duplicates, leak_threshold=None, validation=0.0, overwrite=True)
        report = prepare([corpus], tokenizer, tmp_path / "data", options)
        found[duplicates] = report.duplicates
        assert report.train_documents == DOCUMENTS + 3 - report.duplicates
    assert found["keep"] == 0
    assert found["exact"] == 2
    assert found["near"] >= 3


def test_the_share_of_a_large_corpus_is_capped(corpus: Path, tokenizer, tmp_path: Path) -> None:
    options = PrepareOptions(validation=0.5, max_validation_documents=7, leak_threshold=None)
    assert prepare([corpus], tokenizer, tmp_path / "data", options).validation_documents == 7


def test_standard_input_is_read(texts, tokenizer, tmp_path: Path, monkeypatch) -> None:
    data = "\n\n".join(" ".join(text.split()) for text in texts).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
    report = prepare(["-"], tokenizer, tmp_path / "data", PrepareOptions(leak_threshold=None))
    assert report.train_documents + report.validation_documents == DOCUMENTS
    assert not (tmp_path / "data" / "stdin.txt").exists()


def test_problems_are_counted_and_reported(corpus: Path, tokenizer, tmp_path: Path) -> None:
    with corpus.open("a", encoding="utf-8") as file:
        file.write("{broken\n")
    with pytest.raises(CorpusError, match=r"stories\.jsonl, line 121: not valid JSON"):
        prepare([corpus], tokenizer, tmp_path / "data")
    messages = []
    options = PrepareOptions(errors="skip")
    report = prepare([corpus], tokenizer, tmp_path / "data", options, on_problem=messages.append)
    assert report.problems == len(messages) == 1


def test_problems_are_reported_without_a_survey(corpus: Path, tokenizer, tmp_path: Path) -> None:
    with corpus.open("a", encoding="utf-8") as file:
        file.write("{broken\n")
    held_out = write(tmp_path / "held-out.jsonl", ["একেবারে অন্য একটা কথা, যা কোনো গল্পে নেই।"])
    options = PrepareOptions(errors="skip", validation=held_out, duplicates="keep")
    assert prepare([corpus], tokenizer, tmp_path / "data", options).problems == 1


def test_progress_reaches_the_end(corpus: Path, tokenizer, tmp_path: Path) -> None:
    last = {}
    prepare(
        [corpus],
        tokenizer,
        tmp_path / "data",
        on_progress=lambda stage, done, total: last.update({str(stage): (done, total)}),
    )
    size = corpus.stat().st_size
    assert last == {"surveying": (size, size), "encoding": (size, size)}


def test_an_existing_folder_is_not_overwritten_by_accident(corpus: Path, tokenizer, tmp_path: Path) -> None:
    prepare([corpus], tokenizer, tmp_path / "data")
    before = contents(tmp_path / "data")
    with pytest.raises(KothaError, match="exists; choose another f"):
        prepare([corpus], tokenizer, tmp_path / "data", PrepareOptions(seed=5))
    assert contents(tmp_path / "data") == before
    prepare([corpus], tokenizer, tmp_path / "data", PrepareOptions(seed=5, overwrite=True))
    assert contents(tmp_path / "data") != before


def test_other_folders_are_never_replaced(corpus: Path, tokenizer, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.tex").write_text("years of work")
    with pytest.raises(KothaError, match="exists; choose another f"):
        prepare([corpus], tokenizer, precious, PrepareOptions(overwrite=True))
    assert (precious / "thesis.tex").read_text() == "years of work"


@pytest.mark.parametrize(
    ("description", "message"), [("{}", "exists; choose another f"), (None, "contains thesis.tex, which")]
)
def test_a_known_file_name_does_not_make_a_data_folder(corpus: Path, tokenizer, tmp_path, description, message) -> None:
    prepare([corpus], tokenizer, tmp_path / "data")
    (tmp_path / "data" / "thesis.tex").write_text("years of work")
    if description is not None:
        (tmp_path / "data" / "dataset.json").write_text(description)
    with pytest.raises(KothaError, match=message):
        prepare([corpus], tokenizer, tmp_path / "data", PrepareOptions(overwrite=True))
    assert (tmp_path / "data" / "thesis.tex").read_text() == "years of work"


def test_a_failure_half_way_leaves_nothing(corpus: Path, tokenizer, tmp_path: Path, monkeypatch) -> None:
    write = shards._HashedFile.write

    def write_until_full(file: shards._HashedFile, data: bytes) -> None:
        if file.size > 5000:
            raise OSError(28, "No space left on device")
        write(file, data)

    monkeypatch.setattr(shards._HashedFile, "write", write_until_full)
    with pytest.raises(KothaError, match="No space left on device; no partial output was left"):
        prepare([corpus], tokenizer, tmp_path / "data")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["stories.jsonl"]


def test_a_corpus_that_changes_between_the_passes_is_rejected(
    corpus: Path, tokenizer, tmp_path: Path, monkeypatch
) -> None:
    survey = prepare_module._Job.survey

    def survey_then_grow(job, *rest):
        found = survey(job, *rest)
        with corpus.open("a", encoding="utf-8") as file:
            file.write('{"text": "হঠাৎ এল"}\n')
        return found

    monkeypatch.setattr(prepare_module._Job, "survey", survey_then_grow)
    with pytest.raises(DataError, match="the files changed between the two passes"):
        prepare([corpus], tokenizer, tmp_path / "data")


def test_wrong_options_say_what_to_do() -> None:
    with pytest.raises(UsageError, match=r"validation=5 must be at least 0 and below 1"):
        PrepareOptions(validation=5)
    with pytest.raises(UsageError, match="workers=0 is too small; use 1 or more"):
        PrepareOptions(workers=0)


def test_no_remaining_training_documents_is_an_error(tokenizer, tmp_path: Path) -> None:
    corpus = write(tmp_path / "one.jsonl", ["একটাই কথা, আর নেই"])
    with pytest.raises(CorpusError, match="no training documents are left"):
        prepare([corpus], tokenizer, tmp_path / "data", PrepareOptions(validation=0.9))


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_the_end_of_a_single_document_is_held_out(share: float, texts, tokenizer, tmp_path: Path) -> None:
    """A book without a blank line is one document, so only its end can be validation text."""
    book = "\n".join(line for text in texts for line in text.splitlines() if line.strip())
    report = prepare(
        [write(tmp_path / "book.jsonl", [book])], tokenizer, tmp_path / "d", PrepareOptions(validation=share)
    )
    data = Dataset(tmp_path / "d")
    read = {name: "".join(tokenizer.decode(each) for each in data[name]) for name in ("train", "validation")}
    assert report.cut and (report.train_documents, report.validation_documents) == (1, 1)
    assert read["train"] + read["validation"] == tokenizer.normalize(book), "nothing is lost, nothing is in both"
    assert read["train"].rstrip()[-1] in "।?!”", "it is cut behind a sentence"
    assert abs(len(read["validation"]) / len(book) - share) < 0.02


def test_a_title_and_a_book_are_two_documents_and_the_book_is_trained_on(texts, tokenizer, tmp_path: Path) -> None:
    book = " ".join(line for text in texts for line in text.splitlines() if line.strip())
    for seed in range(6):  # whichever of the two is selected
        out = tmp_path / str(seed)
        corpus = write(tmp_path / "two.jsonl", ["নদীর কথা", book])
        report = prepare([corpus], tokenizer, out, PrepareOptions(seed=seed))
        assert report.train_bytes > 0.9 * len(book.encode()) and report.validation_tokens > 0


def test_documents_of_similar_size_are_not_cut(corpus: Path, tokenizer, tmp_path: Path) -> None:
    assert not prepare([corpus], tokenizer, tmp_path / "d").cut


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("এক\nদুই\nতিন", "তিন"),
        ("এক। দুই? তিন!", "তিন!"),
        ("তিনি বললেন, “যাই।” তারপর গেলেন", "তারপর গেলেন"),
        ("  এক।   ", None),
        ("\n\nএক\n", None),
        ("৩.৫ কেজি চাল", None),
        ("", None),
    ],
)
def test_the_held_out_end_starts_with_a_line_or_a_sentence(text: str, end: str | None) -> None:
    found = end_of(text, 0.05)
    assert (None if found is None else text[found:]) == end


def test_the_search_for_the_end_is_linear() -> None:
    assert end_of("ক" + " " * 2_000_000 + "খ", 0.05) is None


@pytest.mark.extended
def test_a_kill_at_any_moment_leaves_no_partial_folder(launcher: Launcher, tokenizer, texts, tmp_path: Path) -> None:
    corpus = write(tmp_path / "stories.jsonl", [f"{text}\n{number}" for number, text in enumerate(texts * 2)])
    tokenizer.save(tmp_path / "tokenizer")
    out, log = tmp_path / "data", tmp_path / "log"
    command = ["prepare", str(corpus), "--tokenizer", str(tmp_path / "tokenizer"), "--out", str(out)]
    for attempt in range(3):
        process = launcher.start(command, log)
        time.sleep(0.05 + 0.3 * attempt)
        os.kill(process, signal.SIGKILL if attempt % 2 else signal.SIGINT)
        code = launcher.wait(process)
        if out.exists():
            Dataset(out)  # raises if the folder is incomplete
            break
        assert code != 0
    launcher.run([*command, "--overwrite"], log)
    Dataset(out)


@pytest.mark.skipif(not SHARED_DATA.is_dir(), reason=f"the course's news set is not at {SHARED_DATA}")
@pytest.mark.parametrize("shipped", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_the_numbers_of_the_course(shipped: bool, tokenizer, tmp_path: Path) -> None:
    train, validation = SHARED_DATA / "news" / "train.jsonl.zst", SHARED_DATA / "news" / "validation.jsonl.zst"
    paths, options = (
        ([train], PrepareOptions(validation=validation)) if shipped else ([train, validation], PrepareOptions())
    )
    report = prepare(paths, tokenizer, tmp_path / "data", options)
    assert (report.train_documents, report.validation_documents) == (7270, 383)
    assert (report.leaked, report.duplicates, report.problems) == (0, 0, 0)
