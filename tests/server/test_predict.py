"""Tasks over HTTP: the same results as the library, unsupported families, names instead of paths."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.inside.small_models import TEXT
from tests.loopback import http
from tests.prepared import prepared, some_stories
from tests.server.conftest import Address, ask, refused, started
from tests.server.test_inside import HOSTILE_IMAGES, IMAGES, png
from tests.server.test_jobs import add
from tests.text.conftest import trained

import kotha
from kotha.cli.main import main
from kotha.errors import KothaError, UsageError
from kotha.generation.classify import classify_pixels
from kotha.server.app import make_app
from kotha.server.jobs.store import OUT, JobStore
from kotha.server.settings import Limits, ServeSettings
from kotha.server.state import Indexes

GAPPED = "নদীর ধারে [MASK] একটি [MASK]।"
TRAINING, INDEX = "0123456789ab", "ba9876543210"


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("v1/completions", {"model": "bert", "prompt": TEXT}),
        ("v1/chat/completions", {"model": "vit", "messages": [{"role": "user", "content": TEXT}]}),
        ("v1/embeddings", {"model": "vit", "input": TEXT}),
        ("api/read", {"model": "seq2seq", "prompt": TEXT}),
        ("api/card", {"model": "vit", "text": TEXT}),
        ("api/classify", {"model": "gpt", "texts": [TEXT]}),
        ("api/classify", {"model": "vit", "texts": [TEXT]}),
        ("api/classify", {"model": "gpt-classifier", "images": ["AAAA"]}),
        ("api/fill", {"model": "gpt", "text": GAPPED}),
        ("api/translate", {"model": "gpt", "texts": [TEXT]}),
        ("api/inside/attention", {"model": "gpt-classifier", "text": TEXT}),
        ("api/inside/attention", {"model": "gpt", "image": "AAAA"}),
        ("api/inside/alignment", {"model": "gpt", "text": TEXT}),
        ("api/inside/lens", {"model": "vit", "text": TEXT}),
        ("api/inside/heads", {"model": "seq2seq", "text": TEXT}),
        ("api/inside/worksheet", {"model": "vit", "text": TEXT}),
    ],
)
def test_an_unsupported_task_and_a_missing_model_give_different_errors(
    house: Address, path: str, asked: dict[str, Any]
) -> None:
    response = http.post(f"{house.url}/{path}", json=asked, timeout=60)
    assert response.status_code == 400, response.text
    missing = http.post(f"{house.url}/{path}", json={**asked, "model": "nobody"}, timeout=60)
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "model_not_found"), missing.text


# -- classes, gaps, translations --------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["gpt-classifier", "bert-classifier"])
def test_texts_are_classified_as_the_library_does(house: Address, model: str) -> None:
    texts, lm = [TEXT, "নদী"], kotha.load(house.folder / model, device="cpu")
    result = ask(house, "classify", model=model, texts=texts)["results"]
    for answer, each in zip(result, lm.classify(texts), strict=True):
        assert answer["label"] == each.label and answer["probabilities"] == pytest.approx(each.probabilities, abs=1e-6)
        assert answer["why"] == []
    [answer], expected = (
        ask(house, "classify", model=model, texts=[TEXT], why=True)["results"],
        lm.classify(TEXT, why=True),
    )
    assert [each["text"] for each in answer["why"]] == [each.text for each in expected.why]
    assert [each["change"] for each in answer["why"]] == pytest.approx([each.change for each in expected.why], abs=1e-6)
    assert ask(house, "classify", model=model, texts=[TEXT * 9, TEXT * 99])["truncated"] == 1
    assert "more than 32 tokens" in refused(house, "classify", model=model, texts=[TEXT * 9], why=True)
    assert "cannot read images" in refused(house, "inside/attention", model="gpt", image=png(IMAGES[0]))
    assert "1 to 4" in refused(house, "classify", model=model, texts=["ক"] * 5)
    assert "1 to 4" in refused(house, "classify", model=model, texts=[])
    for path in ("inside/attention", "inside/lens", "inside/flow", "inside/heads", "inside/worksheet"):
        assert "is a classifier" in refused(house, path, model=model, text=TEXT)


def test_images_are_classified_as_the_library_does(house: Address) -> None:
    result = ask(house, "classify", model="vit", images=[png(each) for each in IMAGES])["results"]
    lm = kotha.load(house.folder / "vit", device="cpu")
    for told, pixels in zip(result, IMAGES, strict=True):
        expected = classify_pixels(lm.bundle, pixels[None].astype(np.float32) / np.float32(127.5) - 1)
        assert told["probabilities"] == pytest.approx(expected.probabilities, abs=1e-6)
    for kind in ("no base64", "not a PNG", "empty"):
        text, why = HOSTILE_IMAGES[kind]
        assert why in refused(house, "classify", model="vit", images=[text])
    assert "not a classifier" in refused(house, "classify", model="gpt", texts=["ক"])


def test_gaps_are_filled_as_the_library_does(house: Address) -> None:
    result = ask(house, "fill", model="bert", text=GAPPED, words=3)
    expected = kotha.load(house.folder / "bert", device="cpu").fill(GAPPED, words=3).to_dict()
    assert [[each["word"] for each in gap] for gap in result["words"]] == [
        [each["word"] for each in gap] for gap in expected["words"]
    ]
    assert result["words"][0][0]["probability"] == pytest.approx(expected["words"][0][0]["probability"], abs=1e-6)
    assert "no gap to fill" in refused(house, "fill", model="bert", text=TEXT)
    assert "request fewer words" in refused(house, "fill", model="bert", text="[MASK] " * 20, words=100)
    assert "BERT" in refused(house, "fill", model="gpt", text=GAPPED)


def test_texts_are_translated_as_the_library_does(house: Address) -> None:
    result = ask(house, "translate", model="seq2seq", texts=["নদী", "মা"], beams=2)["texts"]
    assert result == kotha.load(house.folder / "seq2seq", device="cpu").translate(["নদী", "মা"], beams=2)
    assert "more than 47 tokens" in refused(house, "translate", model="seq2seq", texts=[TEXT * 9])
    assert "Seq2Seq" in refused(house, "translate", model="bert", texts=["ক"])


# -- documents, runs, plans -------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def office(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """A server with an index, a run, and completed jobs: a training run and an index."""
    folder = tmp_path_factory.mktemp("office")
    data = prepared(folder, some_stories(seed=3, n_documents=60), trained("unigram"))
    run = kotha.train(data.path, out=folder / "run", preset="mini", steps=8, batch_size=4, evaluate_every=4)
    kotha.Index(folder / "stories.index", kotha.load(models / "taught", device="cpu")).update(folder / "texts.jsonl")
    jobs = JobStore(folder / "jobs")
    for id, kind in ((TRAINING, "train"), (INDEX, "index")):
        add(jobs.folder, id, kind, code=int(kind == "index"), ended=2.0)
    shutil.copytree(run.path, jobs.folder / TRAINING / OUT)
    settings = ServeSettings(jobs=jobs.folder, indexes=(str(folder / "stories.index"),), limits=Limits(rows=2))
    places = [str(run.path), str(models / "plain"), str(models / "taught")]
    app = make_app(places, settings, device="cpu")
    for url in started(app):
        yield Address(url, app, folder)


def test_questions_are_answered_as_the_library_does(office: Address, models: Path) -> None:
    question = some_stories(seed=3, n_documents=1)[0].split("।")[0]
    for name in (None, "plain", "taught"):
        asked = {"index": "stories", "question": question, "limit": 3, "tokens": 5}
        by = {"by": "words"} if name == "plain" else {}  # it did not compute these vectors
        result = ask(office, "ask", **asked, **by, **({} if name is None else {"model": name}))
        lm = None if name is None else kotha.load(models / name, device="cpu")
        with kotha.Index(office.folder / "stories.index", lm) as index:
            expected = index.ask(question, 3, by.get("by"), tokens=5)
        assert (result["answer"], result["found"], result["cited"]) == (
            str(expected.answer),
            expected.found,
            expected.cited,
        )
        assert [each["text"] for each in result["passages"]] == [hit.passage.text for hit in expected.hits]
        assert [each["score"] for each in result["passages"]] == pytest.approx([hit.score for hit in expected.hits])
        assert result["passages"][0]["source"] == "texts.jsonl" and result["remark"] == (
            expected.remark and str(expected.remark)
        )
    wrong = refused(office, "ask", index="stories", question=question, model="plain", by="meaning")
    assert wrong.startswith("stories contains vectors computed by taught")
    assert "unknown index 'storis'" in refused(office, "ask", 404, index="storis", question="ক")
    for place in ("/etc/stories.index", "../stories", "stories.index", ""):
        assert "unknown index" in refused(office, "ask", 404, index=place, question="ক")
    assert "tokens: it must be 4,096 or less" in refused(office, "ask", index="stories", question="ক", tokens=4097)
    listed = http.get(f"{office.url}/api/indexes").json()["indexes"]
    assert [each["documents"] for each in listed if each["name"] == "stories"] == [60]


def test_a_server_has_the_indexes_that_it_was_given(house: Address, office: Address, tmp_path: Path) -> None:
    assert "has no indexes" in refused(house, "ask", 404, index="stories", question="ক")
    place = str(office.folder / "stories.index")
    with pytest.raises(UsageError, match="two indexes are named stories"):
        Indexes([place, place])
    with pytest.raises(KothaError, match="nowhere"):
        Indexes([str(tmp_path / "nowhere.index")])


def test_the_command_passes_indexes_to_the_server(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", str(models / "plain"), "--index", str(tmp_path / "nowhere.index"), "--port", "0"]) != 0
    output = capsys.readouterr().err
    assert "nowhere.index" in output and output.count("\n") == 1


@pytest.mark.parametrize("name", ["run", TRAINING])
def test_a_curve_is_diagnosed_as_the_library_does(office: Address, name: str) -> None:
    result = ask(office, "doctor", run=name)
    assert result["looked_at_data"] is True
    assert result["findings"][0]["kind"] == "untrained" and set(result["findings"][0]["advice"]) == {"en", "bn"}
    assert result["healthy"] is None


def test_a_model_without_a_curve_is_rejected(office: Address, house: Address) -> None:
    assert "no loss curve" in refused(office, "doctor", run="plain")
    assert "no loss curve" in refused(office, "doctor", run=INDEX)
    for name in ("nobody", "../run", "/etc", "0" * 12):
        refused(office, "doctor", 404, run=name)
        refused(office, "compare", 404, runs=[name])
        refused(house, "doctor", 404, run=name)


def test_runs_are_compared_as_the_library_does(office: Address) -> None:
    result = ask(office, "compare", runs=["run", TRAINING])
    expected = kotha.compare([office.folder / "run"]).rows[0]
    assert [row["name"] for row in result["rows"]] == ["run", TRAINING]
    assert result["rows"][0]["bits_per_byte"] == pytest.approx(expected.bits_per_byte) and result["best"] is None
    assert "no measurements of its own" in refused(office, "compare", runs=["run", "plain"])
    assert "listed twice" in refused(office, "compare", runs=["run", "run"])
    assert "runs: it has more than 8 items" in refused(office, "compare", runs=list("abcdefghi"))
    brought = http.post(f"{office.url}/api/files", json={"text": "নদীর ধারে একটি গ্রাম ছিল।"}).json()["id"]
    measured = ask(office, "compare", runs=["plain", "run"], text=brought)
    assert measured["text"] == brought and measured["reasons"][-1]["kind"] in ("untold", "few")
    assert all(row["measured"]["documents"] == 1 for row in measured["rows"])
    refused(office, "compare", 404, runs=["run"], text="0" * 12)


def test_a_plan_is_the_librarys_own(office: Address, house: Address) -> None:
    result = ask(office, "plan", preset="pocket", n_layers=3, steps=100)
    assert result["config"]["n_layers"] == 3 and result["steps"] == 100
    assert result["parameters"]["total"] == 578_144 + (578_144 - 393_216 - 96) // 2
    assert result["export_targets"][0]["name"] == "hf" and result["design"] is None
    on_gpu = ask(office, "plan", preset="bangla-58m", gpu="h200")
    assert on_gpu["gpu"] and on_gpu["seconds"] > 0
    text = "\n".join(some_stories(seed=5, n_documents=50))
    brought = http.post(f"{office.url}/api/files", json={"text": text}).json()["id"]
    design = ask(office, "plan", minutes=5, gpu="t4", data=brought)["design"]
    assert design["reasons"] and "commands" not in design and str(office.folder) not in json.dumps(design)
    threads = torch.get_num_threads()
    here = ask(office, "plan", minutes=1, data=brought)
    assert here["design"]["sizes"]["d_model"] == here["config"]["d_model"] and here["time_source"]
    assert torch.get_num_threads() == threads, "the server's own stay as they are"
    assert "pocket" in refused(office, "plan", preset="poket")
    assert "divisible" in refused(office, "plan", preset="pocket", n_heads=5)
    assert "h200" in refused(office, "plan", preset="pocket", gpu="h201")
    for size, value in {"n_layers": 129, "d_model": 1 << 15, "n_heads": 257, "d_ff": 1 << 18}.items():
        assert f"{size}: it must be " in refused(office, "plan", preset="pocket", **{size: value})
    assert "specify what to plan" in refused(office, "plan")
    assert "data is missing" in refused(office, "plan", minutes=3)
    empty = http.post(f"{office.url}/api/files", json={"text": " ", "file_type": "jsonl"}).json()["id"]
    result = refused(office, "plan", minutes=3, data=empty)
    assert empty in result and "/uploads" not in result, "by its id, and not by its place"
    refused(office, "plan", 404, minutes=3, data="0" * 12)
    assert "no folder for jobs and files" in refused(house, "plan", 404, minutes=3, data="0" * 12)
