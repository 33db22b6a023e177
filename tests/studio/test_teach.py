"""Teach: the page's results for a text, an image, a gap or a question equal the library's."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import started
from tests.server.test_inside import png
from tests.studio.conftest import Opened
from tests.studio.learned import BANGLA, BIRD, BIRD_SENTENCE, FRUIT, LATIN, OF_A_BIRD, OF_A_FRUIT, SHAPES, drawn_shapes

import kotha
from kotha.artifacts.run_folder import RunFolder
from kotha.generation.classify import classify_pixels
from kotha.server.app import make_app
from kotha.server.jobs.store import JobStore
from kotha.server.settings import ServeSettings
from kotha.storage.images import decode_png

pytestmark = pytest.mark.browser
PATIENCE = 240_000
GAPPED = BIRD_SENTENCE.replace(BIRD, "[MASK]")
STORY = "পদ্মা নদীর ধারে রহিমের বাড়ি।\n\nকরিম স্কুলে যায় সাইকেলে।"
QUESTION = "রহিমের বাড়ি কোথায়?"


@pytest.fixture(scope="module")
def school(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of this server's jobs."""
    return tmp_path_factory.mktemp("school")


@pytest.fixture(scope="module")
def studio(families: Path, school: Path) -> Iterator[str]:
    """A server with a model of each family, including classifiers, and with jobs."""
    names = [str(each) for each in sorted(families.iterdir())]
    yield from started(make_app(names, ServeSettings(jobs=school), device="cpu"))


def shares(page: Any, label: str) -> list[tuple[str, str]]:
    """Return the rows in a list of bars: labels and probabilities."""
    rows = page.get_by_role("list", name=label)
    rows.locator("li").first.wait_for()
    return [
        (row.locator(".name").inner_text(), row.locator(".number").inner_text()) for row in rows.locator("li").all()
    ]


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


@pytest.mark.parametrize(
    ("model", "text", "label"),
    [
        ("bert-classifier", OF_A_BIRD, BIRD),
        ("bert-classifier", OF_A_FRUIT, FRUIT),
        ("gpt-classifier", "নদীর ধারে একটি গ্রাম ছিল।", None),  # the model has learned nothing, and is shown unchanged
    ],
)
def test_a_text_is_classified_as_the_library_does(
    enter: Opened, families: Path, model: str, text: str, label: str | None
) -> None:
    page = enter("teach", "classify", m=model, x=text)
    found = shares(page, "Every class, with its probability")
    [expected] = kotha.load(families / model, device="cpu").classify([text], why=True)
    assert label is None or (expected.label == label and expected.probabilities[label] > 0.5), "it has learned both"
    assert found == [(label, percent(share)) for label, share in expected.probabilities.items()]
    page.get_by_role("button", name="Which words decided?").click()
    pieces = page.locator(".words span")
    pieces.first.wait_for()
    assert "".join(pieces.all_inner_texts()) == "".join(each.text for each in expected.why)
    result = [piece.get_attribute("title") for piece in pieces.all()]
    assert all(percent(abs(each.change)) in said for each, said in zip(expected.why, result, strict=True))


def test_an_image_is_classified_as_the_library_does(enter: Opened, families: Path) -> None:
    page = enter("teach", "classify", m="vit")
    images, labels = drawn_shapes(seed=2, n_images=1)
    image = base64.b64decode(png(images[0]))
    page.get_by_label("Choose an image…").set_input_files({"name": "a.png", "mimeType": "image/png", "buffer": image})
    found = shares(page, "Every class, with its probability")
    lm = kotha.load(families / "vit", device="cpu")
    pixels = decode_png(image, lm.config.image_size, lm.config.n_channels, 1 << 20)
    expected = classify_pixels(lm.bundle, pixels)
    assert expected.label == SHAPES[labels[0]] and expected.probabilities[expected.label] > 0.5, "it knows the shape"
    assert found == [(label, percent(share)) for label, share in expected.probabilities.items()]
    page.get_by_label("Choose an image…").set_input_files(
        {"name": "a.png", "mimeType": "image/png", "buffer": b"nothing"}
    )
    page.get_by_text("could not be read as an image").wait_for()


def test_gaps_are_filled_as_the_library_does_and_a_word_is_put_in(enter: Opened, families: Path) -> None:
    page = enter("teach", "fill", x=GAPPED)
    found = shares(page, "Gap 1")
    [expected] = kotha.load(families / "bert", device="cpu").fill(GAPPED, words=8).to_dict()["words"]
    assert expected[0]["word"] == BIRD and expected[0]["probability"] > 0.5, "it has learned the word"
    assert found == [(each["word"], percent(each["probability"])) for each in expected]
    page.get_by_role("list", name="Gap 1").get_by_role("button").first.click()
    page.get_by_text("There is no gap yet").wait_for()
    assert page.get_by_role("textbox", name="Your text").input_value() == expected[0]["text"]
    page.get_by_role("button", name="Insert a gap").click()
    page.get_by_role("list", name="Gap 1").wait_for()


def test_a_text_is_translated_as_the_library_does(enter: Opened, families: Path) -> None:
    page = enter("teach", "translate", x=LATIN)
    page.get_by_role("button", name="Translate ⏎").click()
    result = page.locator(".result")
    result.wait_for()
    [expected] = kotha.load(families / "seq2seq", device="cpu").translate([LATIN], beams=4)
    assert result.text_content() == expected == BANGLA, "it has learned to write the names"
    page.get_by_role("heading", name="Attention").wait_for()
    aligned = kotha.load(families / "seq2seq", device="cpu").alignment(LATIN, beams=4).to_dict()
    answer = [button.get_attribute("aria-label") for button in page.locator(".written button").all()]
    for name, source, weights, words in zip(
        BANGLA.split(), LATIN.split(), aligned["weights"], answer, strict=True
    ):  # each name was generated from the source name
        assert name in words and source in words and percent(max(weights)) in words
    assert "m=seq2seq" in (page.get_by_role("link", name="Open in Look inside").get_attribute("href") or "")


def test_documents_are_indexed_and_answer_with_their_passages(enter: Opened, school: Path) -> None:
    page = enter("teach", "ask")
    page.get_by_role("heading", name="There are no documents to ask yet.").wait_for()
    page.get_by_label("Choose files…").set_input_files(
        {"name": "নদী.txt", "mimeType": "text/plain", "buffer": STORY.encode()}
    )
    field = page.get_by_role("textbox", name="Your question")
    field.wait_for(timeout=PATIENCE)
    field.fill(QUESTION)
    field.press("Enter")
    page.get_by_role("heading", name="Answer").wait_for()
    [job] = [each for each in JobStore(school).all() if each.kind == "index"]
    with kotha.Index(JobStore(school).result(job.id)) as index:
        expected = index.ask(QUESTION)
    passages = page.locator("li.card .passage").all_inner_texts()
    assert passages == [hit.passage.text for hit in expected.hits]
    assert page.locator(".answer .passage").inner_text() == expected.answer
    assert page.get_by_text("নদী.txt, ").first.is_visible()
    field.fill("zebra crossing?")
    field.press("Enter")
    page.get_by_text("Nothing in these documents answers this.").wait_for()
    assert not page.get_by_role("heading", name="Answer").is_visible()


def test_a_wrong_table_is_answered_with_row_and_column(enter: Opened) -> None:
    page = enter("teach", "classify")
    table = "text,label\nভালো দিন,সুখ\nমন খারাপ,\nকী মজা,সুখ\nকী কষ্ট,দুঃখ\n"
    bring = page.get_by_label("Choose a table…")
    bring.set_input_files({"name": "moods.csv", "mimeType": "text/csv", "buffer": table.encode()})
    page.get_by_text("line 3, column label: the cell is empty").wait_for()
    start = page.get_by_role("button", name="Start", exact=True)
    assert not start.is_enabled()
    page.get_by_label("Skip them and continue").check()
    assert start.is_enabled()
    rows = page.get_by_role("group", name="The first rows, as they will be read").locator("tbody tr")
    assert rows.first.locator("td").all_inner_texts() == ["ভালো দিন", "সুখ"]


def test_a_file_that_is_no_table_is_answered_in_words(browser: Any, studio: str) -> None:
    page = browser.new_page()
    page.goto(f"{studio}/#/teach/classify?lang=en")
    only = {"name": "one.csv", "mimeType": "text/csv", "buffer": b"only\none\n"}
    page.get_by_label("Choose a table…").set_input_files(only)
    page.get_by_text("This table could not be read").wait_for()
    page.get_by_text("one.csv has no separate fields").wait_for()
    page.close()


@pytest.mark.slow  # takes half a minute; tests/server/test_teaching.py always trains one without the page
def test_a_classifier_is_taught_in_the_page_and_its_score_is_the_run_s(enter: Opened, school: Path) -> None:
    page = enter("teach", "classify")
    page.get_by_role("button", name="Use the built-in example").click()
    page.get_by_text("stories, news, entries: 400 rows").wait_for()
    page.get_by_label("2. Start from").select_option("gpt")
    field = page.get_by_role("textbox", name="Maximum epochs")
    field.fill("1")
    field.press("Tab")
    page.get_by_role("button", name="Start", exact=True).click()
    page.get_by_text("always the most frequent class", exact=True).wait_for(timeout=PATIENCE)
    [job] = [each for each in JobStore(school).all() if each.kind == "finetune"]
    summary = RunFolder(JobStore(school).result(job.id)).summary()
    assert summary is not None
    bars = [row.locator(".number").inner_text() for row in page.locator(".bars li").all()]
    reached = [summary["accuracy"], *(each["accuracy"] for each in summary["baselines"].values())]
    assert bars == [percent(each) for each in reached]
    assert page.locator(".large").inner_text().startswith(percent(summary["accuracy"]))
    assert page.get_by_role("link", name="Loss curve in Train").get_attribute("href").endswith(f"run={job.id}")
    page.wait_for_url(f"**m={job.id}*")
    sample = json.loads((JobStore(school).result(job.id) / "examples" / "test.jsonl").read_text().split("\n")[0])
    page.locator(".some button").first.click()
    assert page.get_by_role("textbox", name="Your text").input_value() == sample["text"]
    [expected] = kotha.load(JobStore(school).result(job.id), device="cpu").classify([sample["text"]])
    page.locator(".answer", has_text=expected.label).wait_for()
    assert [share for _, share in shares(page, "Every class, with its probability")] == [
        percent(share) for share in expected.probabilities.values()
    ]
