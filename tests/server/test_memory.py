"""An out-of-memory error gives an error response and one log line, and the server continues."""

import logging

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from kotha.server.errors import install

REFUSED = [
    RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 25165824 bytes. Error code 12"),
    MemoryError(),
    OSError(12, "Cannot allocate memory"),
]


@pytest.mark.parametrize("error", REFUSED, ids=lambda error: type(error).__name__)
def test_lack_of_memory_is_logged_without_a_traceback(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    app = FastAPI()
    install(app)

    @app.get("/")
    def write() -> None:
        raise error

    client = TestClient(app)  # raises what uvicorn would log
    for _ in range(2):
        with caplog.at_level(logging.WARNING):
            answer = client.get("/")
        assert answer.status_code == 500 and "not enough memory" in answer.json()["error"]["message"]
    assert [record.exc_info for record in caplog.records if record.name.startswith("kotha")] == [None, None]


def test_unexpected_errors_are_logged_with_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    app = FastAPI()
    install(app)

    @app.get("/")
    def write() -> None:
        raise RuntimeError("shapes cannot be multiplied")

    answer = TestClient(app).get("/")
    assert answer.status_code == 500 and "internal error" in answer.json()["error"]["message"]
    assert any(record.exc_info for record in caplog.records)
