"""The same over Qdrant: its client's embedded mode, and a real server where KOTHA_QDRANT_URL names one."""

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.retrieval.conftest import BagOfStems

from kotha.errors import KothaError, UsageError
from kotha.retrieval.answer import NOT_FOUND, answer
from kotha.retrieval.documents import Indexing
from kotha.retrieval.index import open_store, search, update
from kotha.retrieval.sqlite_store import SqliteStore

qdrant = pytest.importorskip("qdrant_client", reason="needs the extra kotha[qdrant]")
HOW = Indexing(letters=200)


@pytest.fixture(params=["embedded", "server"])
def client(request: pytest.FixtureRequest) -> Iterator[Any]:
    url = os.environ.get("KOTHA_QDRANT_URL")
    if request.param == "server" and url is None:
        pytest.skip("KOTHA_QDRANT_URL names no running server")
    made = qdrant.QdrantClient(":memory:") if request.param == "embedded" else qdrant.QdrantClient(url=url)
    yield made
    if request.param == "server":
        made.delete_collection("kotha-test")
    made.close()


@pytest.fixture
def served(client: Any, file: Path) -> Any:
    from kotha.retrieval.qdrant_store import QdrantStore

    with pytest.raises(KothaError, match="there is no index qdrant:kotha-test"):
        QdrantStore(client, "kotha-test")
    made = QdrantStore(client, "kotha-test", write=True)
    update(made, [file], HOW, BagOfStems())
    return made


@pytest.mark.parametrize("by", ["words", "meaning", "both"])
@pytest.mark.parametrize("question", ["বাঘের গায়ে কী?", "পদ্মা নদী", "কৃষি পেশা"])
def test_it_ranks_as_the_file_does(served: Any, store: SqliteStore, question: str, by: Any) -> None:
    embed = BagOfStems()
    theirs, ours = (search(each, question, 3, by, embed).hits for each in (served, store))
    assert theirs[0].passage == ours[0].passage
    assert theirs[0].score == pytest.approx(ours[0].score, abs=2e-3)


def test_it_is_updated_in_place(served: Any, file: Path) -> None:
    assert update(served, [file], HOW, BagOfStems()).unchanged == 4
    file.write_text(file.read_text(encoding="utf-8").replace("বাঘ", "হরিণ"), encoding="utf-8")
    report = update(served, [file], HOW, BagOfStems())
    assert (report.added, report.removed, report.documents) == (1, 1, 4)
    assert "হরিণ" in search(served, "সুন্দরবনে হরিণ", 1, "words").hits[0].passage.text
    assert answer(search(served, "মঙ্গল গ্রহ", 1, "words"), None).answer == NOT_FOUND


def test_a_name_without_a_collection_and_a_silent_server_are_said() -> None:
    with pytest.raises(UsageError, match="names no collection; write qdrant:http://localhost:6333/NAME"):
        open_store("qdrant:nothing")
    with warnings.catch_warnings(), pytest.raises(KothaError, match="does not answer"):
        warnings.simplefilter("ignore")
        open_store("qdrant:http://127.0.0.1:9/news")
