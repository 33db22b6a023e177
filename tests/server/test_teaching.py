"""From an uploaded table to a trained model and its score, and search in uploaded documents."""

import csv
import io
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.loopback import http
from tests.server.conftest import Address, ask, read, started

import kotha
from kotha.artifacts.run_folder import RunFolder
from kotha.finetune.pairs import USUAL_PRESET
from kotha.server.app import make_app
from kotha.server.jobs.kinds import FinetuneJob, PairsJob
from kotha.server.jobs.store import JobStore
from kotha.server.settings import ServeSettings

WAIT = 180


@pytest.fixture(scope="module")
def school(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    folder = tmp_path_factory.mktemp("school")
    app = make_app([str(models / "plain")], ServeSettings(jobs=folder), device="cpu")
    for url in started(app):
        yield Address(url, app, folder)


def upload(address: Address, text: str, file_type: str, name: str = "") -> str:
    return str(ask(address, "files", text=text, file_type=file_type, name=name)["id"])


def done(address: Address, **asked: Any) -> str:
    """Start a job and wait until it ends."""
    id = str(ask(address, "jobs", **asked)["id"])
    end = time.monotonic() + WAIT
    while (status := read(address, f"jobs/{id}"))["state"] == "running":
        assert time.monotonic() < end
        time.sleep(0.2)
    assert status["state"] == "done", status["output"]
    return id


def test_a_table_is_reported_as_training_would_read_it(school: Address) -> None:
    moods = "id,said,mood\n1,খুব ভালো,সুখ\n2,কী কষ্ট,দুঃখ\n3,আহা কী মজা,সুখ\n4,আর পারি না,দুঃখ\n"
    result = ask(school, "table", file=upload(school, moods, "csv"), use="classify")
    assert result["fields"] == ["id", "said", "mood"] and result["chosen"] == ["said", "mood"]
    assert result["rows"][0] == ["খুব ভালো", "সুখ"] and result["count"] == 4
    assert result["classes"] == {"সুখ": 2, "দুঃখ": 2} and result["broken"] == 0
    file = upload(school, "আমি খাই\tI eat\nসে যায়\tshe goes away now\n" * 4, "tsv")
    pairs = ask(school, "table", file=file, use="translate", fields=["1", "2"])
    assert pairs["rows"][1] == ["সে যায়", "she goes away now"] and pairs["classes"] == {}


def test_problems_of_a_table_are_reported_by_line_and_column(school: Address) -> None:
    file = upload(school, "text,label\nক খ,১\nগ,\n,২\nঘ,২\n", "csv", "moods.csv")
    result = ask(school, "table", file=file, use="classify", fields=["text", "label"])
    assert result["broken"] == 2 and result["count"] == 2
    assert [(each["line"], each["field"]) for each in result["problems"]] == [(3, "label"), (4, "text")]
    missing = ask(school, "table", 400, file=file, use="classify", fields=["text", "class"])
    assert "moods.csv" in missing and "class" in missing and str(school.folder) not in missing
    plain = upload(school, "কোনো সারণি নয়", "txt")
    assert "no columns" in ask(school, "table", 400, file=plain, use="classify")
    assert "not found" in ask(school, "table", 404, file="0" * 12, use="classify")
    ask(school, "jobs", 400, kind="finetune", use="classify", table=file, model="plain", fields=["text", "--out"])


def test_example_tables_are_valid(school: Address) -> None:
    kinds = read(school, "examples/classify?rows=40")
    rows = [json.loads(line) for line in kinds["text"].splitlines()]
    assert len(rows) == 40 and {row["label"] for row in rows} == {"গল্প", "খবর", "ভুক্তি"}
    assert all(row["text"].strip() for row in rows)
    assert kinds == read(school, "examples/classify?rows=40") != read(school, "examples/classify?rows=40&seed=1")
    pairs = list(csv.reader(io.StringIO(read(school, "examples/translate?rows=30")["text"]), delimiter="\t"))
    assert pairs[0] == ["latin", "bangla"] and len(pairs) == 31
    assert all(latin.isascii() and not bangla.isascii() for latin, bangla in pairs[1:])
    assert read(school, "examples/ask?rows=20")["text"].count("\n\n") == 19


@pytest.mark.extended
def test_a_classifier_is_trained_on_a_table_and_scored(school: Address) -> None:
    file = upload(school, read(school, "examples/classify?rows=60")["text"], "jsonl")
    asked = {"use": "classify", "table": file, "fields": ["text", "label"], "epochs": 0.5, "broken": "skip"}
    id = done(school, kind="finetune", model="plain", name="kinds", **asked)
    score, summary = read(school, f"runs/{id}/score"), RunFolder(school.folder / id / "out").summary()
    assert summary is not None
    assert (score["measure"], score["value"]) == ("accuracy", summary["accuracy"])
    assert score["baselines"]["majority"] == summary["baselines"]["majority"]["accuracy"]
    assert score["examples"] == summary["examples"] and score["confusion"] == summary["confusion"]
    assert sum(each["support"] for each in score["classes"]) == score["examples"]
    assert {label for _, label in score["some"]} <= {each["label"] for each in score["classes"]}
    result = ask(school, "classify", model=id, texts=[score["some"][0][0]])
    assert set(result["results"][0]["probabilities"]) == {"গল্প", "খবর", "ভুক্তি"}
    assert "no model or job" in read(school, "runs/nobody/score", 404)


@pytest.mark.slow  # the classifier above takes the same way each time
def test_a_translator_is_trained_on_pairs_and_translates(school: Address) -> None:
    file = upload(school, read(school, "examples/translate?rows=120")["text"], "tsv")
    id = done(school, kind="pairs", table=file, steps=2, name="script")
    score = read(school, f"runs/{id}/score")
    summary = RunFolder(school.folder / id / "out").summary()
    assert summary is not None and score["value"] == summary.get("bleu")
    assert read(school, f"models/{id}")["family"] == "seq2seq"
    assert len(ask(school, "translate", model=id, texts=["dinti chhil"], beams=1)["texts"]) == 1
    both = ask(school, "jobs", 400, kind="pairs", table=file, steps=2, minutes=1)
    assert "either minutes or steps" in both


@pytest.mark.slow  # the classifier above takes the same way each time
def test_a_bert_is_trained_on_stories_and_fills_gaps(school: Address) -> None:
    sizes = {"n_layers": 1, "d_model": 16, "n_heads": 2, "context_length": 32, "batch_size": 2}
    asked = {"stories": 60, "steps": 2, "preset": "pocket-bert", "sizes": sizes, "vocab_size": 600}
    id = done(school, kind="learn", **asked)
    result = ask(school, "fill", model=id, text="নদীর ধারে [MASK] আছে।", words=3)
    assert len(result["words"][0]) == 3


def test_documents_are_indexed_and_searched(school: Address) -> None:
    river = upload(school, "পদ্মা নদীর ধারে রহিমের বাড়ি।\n\nকরিম স্কুলে যায় সাইকেলে।", "txt", "নদী.txt")
    id = done(school, kind="index", texts=[river], name="গ্রাম")
    [listed] = [each for each in read(school, "indexes")["indexes"] if each["name"] == id]
    assert listed["title"] == "গ্রাম" and listed["sources"] == 1
    result = ask(school, "ask", index=id, question="রহিমের বাড়ি কোথায়?")
    with kotha.Index(JobStore(school.folder).result(id)) as index:
        expected = index.ask("রহিমের বাড়ি কোথায়?")
    assert result["found"] and result["answer"] == expected.answer
    assert result["passages"][0]["source"] == "নদী.txt"
    assert not ask(school, "ask", index=id, question="zebra crossing?")["found"]
    assert "unknown index" in ask(school, "ask", 404, index="0" * 12, question="ক")
    http.delete(f"{school.url}/api/jobs/{id}")
    assert "has no indexes" in ask(school, "ask", 404, index=id, question="ক")


def test_the_commands_of_jobs_are_valid(tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    table = store.upload("a,b\n1,2\n", "csv")
    place = str(store.uploads.path(table))
    [taught] = FinetuneJob(kind="finetune", use="instruct", table=table, fields=("q", "a"), model="m").commands(
        store, Path
    )
    assert taught[:3] == ["finetune", "instruct", place] and taught[-8:-4] == ["--instruction", "q", "--answer", "a"]
    [pairs] = PairsJob(kind="pairs", table=table, minutes=2, fields=("a", "b"), reverse=True).commands(store, Path)
    assert pairs[:6] == ["train", place, "--preset", USUAL_PRESET, "--minutes", "2.0"]
    assert pairs[6:10] == ["--pair", "a", "b", "--reverse"]
    [more] = PairsJob(kind="pairs", table=table, steps=9, start="old").commands(store, Path)
    assert more[2:6] == ["--from", "old", "--steps", "9"]
