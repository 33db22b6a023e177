"""A server on the loopback interface with small models: one for completion, and one fine-tuned for conversation."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from tests.generation.conftest import tiny
from tests.inside.small_models import make
from tests.loopback import http
from tests.text.conftest import trained

pytest.importorskip("fastapi", reason="the server stands on FastAPI")
pytest.importorskip("uvicorn", reason="the server is run by uvicorn")

from kotha.artifacts import model_folder as bundle
from kotha.model.config import config_from_dict
from kotha.model.family import build
from kotha.server.app import make_app
from kotha.server.lifecycle import HttpServer, listen, server_config
from kotha.server.settings import Limits, ServeSettings
from kotha.text.tokenizer.chat import ChatTemplate


@dataclass
class Address:
    """A running server: its URL, its app, and the folder of its models."""

    url: str
    app: Any
    folder: Path


def ask(address: Address, path: str, status: int = 200, **asked: Any) -> Any:
    """Return the response of a route, or its error message, which must not contain a path on the server."""
    return _told(address, http.post(f"{address.url}/api/{path}", json=asked, timeout=180), status)


def refused(address: Address, path: str, status: int = 400, **asked: Any) -> str:
    return str(ask(address, path, status, **asked))


def read(address: Address, path: str, status: int = 200) -> Any:
    return _told(address, http.get(f"{address.url}/api/{path}", timeout=180), status)


def _told(address: Address, answer: httpx.Response, status: int) -> Any:
    assert answer.status_code == status, answer.text[:500]
    if status == 200:
        return answer.json()
    assert str(address.folder) not in answer.text
    return answer.json()["error"]["message"]


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, tokenizer = tmp_path_factory.mktemp("models"), trained("unigram")
    bundle.save(folder / "plain", tiny("modern", context_length=64), tokenizer)
    taught = tiny("modern", context_length=64, seed=1)
    bundle.save(folder / "taught", taught, tokenizer, chat=ChatTemplate.of(tokenizer))
    return folder


@pytest.fixture
def endless(models: Path) -> list[str]:
    """Arguments for a command that runs until it is stopped."""
    return ["serve", str(models / "plain"), "--port", "0", "--device", "cpu"]


def started(app: Any, host: str = "127.0.0.1") -> Iterator[str]:
    listening = listen(host, 0)
    server = HttpServer(server_config(app), app.state.kotha.settings.limits, app.state.kotha.close)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join(20)
    assert not thread.is_alive(), "the server stops after the signal"


@pytest.fixture
def serve(models: Path) -> Iterator[Callable[..., Address]]:
    """Start servers with models (given by name or folder) for one test."""
    with ExitStack() as stack:

        def begin(*names: str | Path, **settings: Any) -> Address:
            places = [str(models / name) for name in names or ("plain",)]
            app = make_app(places, ServeSettings(**settings), device="cpu")
            return Address(stack.enter_context(contextmanager(started)(app)), app, settings.get("jobs", models))

        yield begin


@pytest.fixture(scope="session")
def address(models: Path) -> Iterator[Address]:
    settings = ServeSettings(limits=Limits(rows=8, choices=8, prompts=8))
    app = make_app([str(models / "plain"), str(models / "taught")], settings, device="cpu")
    for url in started(app):
        yield Address(url, app, models)


def save_small(folder: Path, bodies: Sequence[str]) -> None:
    """Small untrained models, each in a folder with its name, including a text classifier."""
    for body in bodies:
        made = make(body)
        bundle.save(folder / body, made.model, made.tokenizer)
        if body in ("gpt", "bert"):
            config = config_from_dict(made.config.to_dict() | {"family": f"{body}-classifier", "labels": ["হ্যাঁ", "না"]})
            torch.manual_seed(1)
            bundle.save(folder / f"{body}-classifier", build(config).eval(), made.tokenizer)


@pytest.fixture(scope="session")
def families(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of every family, each in a folder with its name."""
    folder = tmp_path_factory.mktemp("families")
    save_small(folder, ("gpt", "bert", "seq2seq", "vit"))
    return folder


@pytest.fixture(scope="session")
def house(families: Path) -> Iterator[Address]:
    """A server with all these models."""
    settings = ServeSettings(limits=Limits(rows=4, positions=32, prompts=4, numbers=30_000, image_pixels=4096))
    app = make_app([str(each) for each in sorted(families.iterdir())], settings, device="cpu")
    for url in started(app):
        yield Address(url, app, families)
