"""The browser's Intl.Segmenter finds the same aksharas as Kotha, tested on a shared list of cases."""

import json
from pathlib import Path

import pytest

from kotha.text.akshara import aksharas

CASES = Path(__file__).parents[1] / "text" / "akshara_cases.txt"

SEGMENT = """texts => {
    const segmenter = new Intl.Segmenter("bn", { granularity: "grapheme" })
    return texts.map(text => Array.from(segmenter.segment(text), part => part.segment))
}"""


@pytest.fixture(scope="module")
def segment(browser):
    """Return a function from texts to the browser's segments."""
    page = browser.new_page()
    yield lambda texts: page.evaluate(SEGMENT, texts)
    page.close()


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
