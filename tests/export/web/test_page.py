"""The exported file is self-contained and fetches nothing; rejected models."""

import base64
import gzip
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.export.models import CONFIGS, shaken

from kotha.errors import KothaError
from kotha.export.parity import ParityReport
from kotha.export.targets import export
from kotha.export.web import export as web

NAME = "</script><b>"


@pytest.fixture(autouse=True)
def no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    """tests/studio compares the page with the model in a browser."""
    monkeypatch.setattr(web, "check_page", lambda *_: ParityReport("web"))


@pytest.fixture
def page(tmp_path: Path) -> str:
    run = tmp_path / "run"
    run.mkdir()
    (run / "README.md").write_text(f"# A card\n\n{NAME} &amp;\n", encoding="utf-8")
    report = export(shaken(CONFIGS["qwen3"]), "web", tmp_path / "out" / "m.html", run=run)
    assert report.weights == "int8" and "bytes" in str(report.remarks[0])
    return (tmp_path / "out" / "m.html").read_text(encoding="utf-8")


def inlined(page: str, name: str) -> str:
    found = re.search(rf'<script type="[^"]*" id="{name}">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_content_security_policy_allows_only_inlined_code(page: str) -> None:
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None and policy[1].startswith("default-src 'none'; ")
    assert "unsafe-inline" not in page and "unsafe-eval'" not in policy[1].replace("wasm-unsafe-eval'", "")
    for tag in ("script", "style"):
        for content in re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL):
            digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy[1]
    assert not re.search(r'(?:src|href)="', page), "nothing is fetched"


def test_the_page_contains_all_weights_compressed(page: str) -> None:
    description = json.loads(inlined(page, "data"))
    weights = gzip.decompress(base64.b64decode(inlined(page, "weights")))
    assert len(weights) == description["bytes"]
    kinds = {each["name"]: each["type"] for each in description["arrays"]}
    assert kinds["tokens.weight"] == "int8" and kinds["tokens.weight.scale"] == "float32"
    assert all(each["start"] % 8 == 0 for each in description["arrays"])


def test_a_card_cannot_inject_html(page: str) -> None:
    assert NAME not in page
    assert NAME in json.loads(inlined(page, "data"))["card"]["own"]


def test_a_page_needs_a_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(KothaError, match="no tokenizer, but a web page needs one"):
        export(replace(shaken(CONFIGS["gpt2"]), tokenizer=None), "web", tmp_path / "m.html")
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_kept_without_overwrite(tmp_path: Path) -> None:
    bundle = shaken(CONFIGS["gpt2"])
    export(bundle, "web", tmp_path)
    with pytest.raises(KothaError, match=r"model\.html already exists; choose another path"):
        export(bundle, "web", tmp_path)
    before = (tmp_path / "model.html").read_bytes()
    export(bundle, "web", tmp_path, overwrite=True)
    assert (tmp_path / "model.html").read_bytes() == before, "the same weights give the same file"
