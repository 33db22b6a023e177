"""The language in which the studio opens: that of the command, otherwise that of the browser."""

import re
from collections.abc import Callable

import pytest
from tests.loopback import http
from tests.server.conftest import Address


@pytest.mark.parametrize(
    ("language", "accepted", "found"),
    [
        (None, "bn-BD,bn;q=0.9,en;q=0.8", "bn"),
        (None, "de-DE,bn;q=0.5", "en"),
        ("en", "bn-BD", "en"),
        ("bn", "en-US", "bn"),
    ],
)
def test_the_studio_opens_in_the_users_language(
    serve: Callable[..., Address], language: str | None, accepted: str, found: str
) -> None:
    answer = http.get(serve(language=language).url, headers={"accept-language": accepted})
    assert re.findall(r'<html lang="(\w+)"', answer.text) == [found]
    assert answer.headers["vary"] == "accept-language"
