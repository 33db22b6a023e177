"""Train: the curve and the texts of a run started in the page match the run's folder."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

pytest.importorskip("playwright", reason="it drives the browser")

from playwright.sync_api import expect
from tests.studio.conftest import LOOKS, Opened, check_everyone_can_use_it, type_into

from kotha.artifacts.run_folder import RunFolder
from kotha.server.jobs.store import JobStore

pytestmark = pytest.mark.browser
PATIENCE = 240_000


def begin(page: Any, stories: str = "100", minutes: str = "0.1") -> None:
    type_into(page, "Stories", stories, "Tab")
    type_into(page, "Minutes", minutes, "Tab")
    page.get_by_role("button", name="Start", exact=True).click()


def newest(work: Path) -> RunFolder:
    jobs = [each for each in work.iterdir() if (each / "log.txt").is_file()]
    return RunFolder(max(jobs, key=lambda each: (each / "log.txt").stat().st_mtime) / "out")


@pytest.fixture(scope="module")
def trained(browser: Any, studio: str, work: Path) -> RunFolder:
    """A completed run that was started in the page."""
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{studio}/#/train?lang=en")
    begin(page)
    page.get_by_role("link", name="Generate text").wait_for()
    page.locator("li", has_text="Stories, 0.10 min").get_by_text("done").wait_for()
    page.close()
    return newest(work)


def test_the_page_shows_what_the_run_measured(enter: Opened, trained: RunFolder) -> None:
    page = enter("train", run=trained.path.parent.name)
    losses = [row["loss_nats"] for row in trained.metrics() if "learning_rate" in row]
    result = page.get_by_role("img").first
    result.wait_for()
    steps = trained.about()["training"]["steps"]
    assert result.get_attribute("aria-label") == (
        f"The loss of Stories, 0.10 min fell from {losses[0]:.2f} to {losses[-1]:.2f} in {steps:,} steps."
    )
    best = trained.best()
    assert best is not None
    assert page.get_by_text(f"{best['bits_per_byte']:.3f} bits per byte").first.is_visible()
    page.get_by_role("heading", name="Diagnosis").wait_for()
    measured = page.get_by_role("row", name="memory, MB").inner_text()
    last = [row for row in trained.metrics() if "memory_bytes" in row][-1]["memory_bytes"]
    assert f"{round(last / 1e6):,}" in measured


@pytest.mark.parametrize("model", ["bert", "bert-classifier", "seq2seq", "vit"])
def test_every_family_s_training_is_looked_back_at(enter: Opened, families: Path, model: str) -> None:
    page = enter("train", run=model)
    run = RunFolder(families / model)
    losses = [row["loss_nats"] for row in run.metrics() if "learning_rate" in row]
    assert sum(losses[-5:]) < 0.6 * sum(losses[:5]), "it has learned"
    result = page.get_by_role("img").first
    result.wait_for()
    assert result.get_attribute("aria-label") == (
        f"The loss of {model} fell from {losses[0]:.2f} to {losses[-1]:.2f} in {len(losses):,} steps."
    )
    last = [row for row in run.metrics() if "tokens_per_second" in row][-1]["tokens_per_second"]
    assert f"{round(last):,}" in page.get_by_role("row", name="tokens per second").inner_text()


def test_a_training_is_named_tagged_and_found_by_its_tag(enter: Opened, trained: RunFolder, work: Path) -> None:
    id = trained.path.parent.name
    store = JobStore(work)
    page = enter("train", run=id)
    page.get_by_role("button", name="Name and tags…").click()
    name = page.locator("form", has=page.get_by_role("button", name="Save")).get_by_role("textbox", name="Name")
    assert name.input_value() == store.status(id).name
    page.keyboard.type("গল্পের প্রথম")  # it has the focus, and its text is selected
    page.keyboard.press("Tab")
    page.keyboard.type("ছোট,  দুই   শব্দ ,ছোট")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="গল্পের প্রথম").wait_for()
    assert (store.status(id).name, store.status(id).tags) == ("গল্পের প্রথম", ("ছোট", "দুই শব্দ"))
    assert page.get_by_role("list", name="Tags").locator("li").all_inner_texts() == ["ছোট", "দুই শব্দ"]
    expect(page.get_by_role("button", name="Name and tags…")).to_be_focused()
    # One plot with two runs: the legend shows the tags, but nothing for a run without tags.
    page.get_by_role("checkbox", name="seq2seq").check()
    legend = page.locator(".legend").first
    expect(legend).to_contain_text("seq2seq: training batches")
    assert (
        "গল্পের প্রথম [ছোট, দুই শব্দ]: training batches" in legend.inner_text() and "seq2seq [" not in legend.inner_text()
    )
    # Only runs with the tag are listed; the filter is part of the URL, and selected runs stay in the plot.
    rows = page.locator("section[aria-labelledby=runs] ul li")
    everything = rows.count()
    page.get_by_role("group", name="Only runs with the tag").get_by_role("button", name="দুই শব্দ").press("Enter")
    expect(rows).to_have_count(1)
    assert (
        "গল্পের প্রথম" in rows.inner_text() and page.get_by_text(f"{everything - 1} more without this tag").is_visible()
    )
    expect(page).to_have_url(re.compile(f"tag={quote('দুই')}"))
    expect(legend).to_contain_text("seq2seq: training batches")
    page.get_by_role("button", name="All", exact=True).click()
    expect(rows).to_have_count(everything)
    # Ctrl-Z undoes the change.
    page.keyboard.press("Control+z")
    page.get_by_role("heading", name="Stories, 0.10 min").wait_for()
    assert (store.status(id).name, store.status(id).tags) == ("Stories, 0.10 min", ())


def test_a_tag_that_is_none_is_told_at_its_place(browser: Any, studio: str, trained: RunFolder) -> None:
    page = browser.new_page()  # the console shows an expected error
    page.set_default_timeout(60_000)
    page.goto(f"{studio}/#/train?lang=en&run={trained.path.parent.name}")
    page.get_by_role("button", name="Name and tags…").click()
    form = page.locator("form", has=page.get_by_role("button", name="Save"))
    form.get_by_role("textbox", name="Tags").fill("ক" * 41)
    form.get_by_role("button", name="Save").click()
    form.get_by_text("tags.0: it is longer than 40 characters; shorten it").wait_for()
    assert form.get_by_role("textbox", name="Tags").input_value() == "ক" * 41, "what was typed stays"
    expect(form.get_by_role("button", name="Save")).to_be_focused()
    page.keyboard.press("Escape")
    form.wait_for(state="detached")
    page.close()


def test_its_model_is_at_hand_in_other_rooms(enter: Opened, trained: RunFolder) -> None:
    page = enter("tokens", m=trained.path.parent.name)
    page.get_by_role("region", name="Stories, 0.10 min").wait_for()
    page = enter("train", run=trained.path.parent.name)
    page.evaluate("localStorage.setItem('kotha.write.visited', '1')")  # a first visitor is greeted anyway
    page.get_by_role("link", name="Generate text").click()
    page.locator(".ribbon").wait_for()  # it generates immediately, even if only the end of the text
    assert f"m={trained.path.parent.name}" in page.url


@pytest.mark.parametrize(("width", "lang", "theme"), LOOKS)
def test_nobody_is_kept_out(enter: Opened, trained: RunFolder, width: int, lang: str, theme: str) -> None:
    page = enter("train", width=width, lang=lang, theme=theme, run=trained.path.parent.name)
    page.get_by_role("img").first.wait_for()
    page.get_by_role("button", name={"en": "Name and tags…", "bn": "নাম ও ট্যাগ…"}[lang]).click()
    check_everyone_can_use_it(page)


@pytest.mark.slow
def test_a_curve_goes_on_when_the_page_is_closed_and_the_server_killed(browser: Any, tmp_path: Path) -> None:
    def serve() -> tuple["subprocess.Popen[str]", str]:
        command = [sys.executable, "-m", "kotha", "serve", "--port", "0", "--jobs", str(tmp_path), "--device", "cpu"]
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert server.stderr is not None
        with server.stderr:
            line = server.stderr.readline()
        return server, line.split(" at ")[1].split("/v1")[0]

    server, url = serve()
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{url}/#/train?lang=en")
    begin(page, minutes="1")
    page.get_by_text("Step ").first.wait_for()
    page.close()
    os.kill(server.pid, signal.SIGKILL)
    server.wait()
    before = len(newest(tmp_path).metrics())
    time.sleep(3)
    server, url = serve()
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{url}/#/train?lang=en")
    page.locator("li", has_text="done").wait_for()
    run = newest(tmp_path)
    assert len(run.metrics()) > before, "it learned on while nobody looked"
    steps = run.about()["training"]["steps"]
    assert f"in {steps:,} steps" in (page.get_by_role("img").first.get_attribute("aria-label") or "")
    page.close()
    server.terminate()
    server.wait(60)
