"""The browser's letters are ours: Intl.Segmenter on the same list of cases."""

import json
import os
from pathlib import Path

import pytest

from kotha.text.akshara import aksharas

CHROMIUM = Path("/usr/bin/chromium")
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
CASES = Path(__file__).parents[1] / "text" / "akshara_cases.txt"

SEGMENT = """texts => {
    const segmenter = new Intl.Segmenter("bn", { granularity: "grapheme" })
    return texts.map(text => Array.from(segmenter.segment(text), part => part.segment))
}"""


@pytest.fixture(scope="module")
def segment():
    """A function from texts to the browser's segments."""
    if not CHROMIUM.exists():
        if os.environ.get("CI"):
            pytest.fail(f"no chromium at {CHROMIUM}, and on CI the browser must be tested")
        pytest.skip(f"no chromium at {CHROMIUM}; Debian's package `chromium` puts one there")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=OPTIONS)
        page = browser.new_page()
        yield lambda texts: page.evaluate(SEGMENT, texts)
        browser.close()


@pytest.mark.browser
def test_the_browser_cuts_every_case_as_we_do(segment):
    expected = [
        [json.loads(f'"{part}"') for part in line.split("|")]
        for line in CASES.read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("# ")
    ]
    found = segment(["".join(segments) for segments in expected])
    assert [pair for pair in zip(found, expected, strict=True) if pair[0] != pair[1]] == []


@pytest.mark.browser
def test_the_browser_cuts_every_bangla_code_point_as_we_do(segment):
    texts = [f"ক{chr(code)}a{chr(code)}্{chr(code)}ক্{chr(code)}ক" for code in range(0x0980, 0x0A00)]
    assert segment(texts) == [aksharas(text) for text in texts]
