"""Train: a training begun in the page, its curve, and what is said of it, are those of the run's folder."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.studio.conftest import LOOKS, Opened, faults, sideways

from kotha.runs import RunFolder

pytestmark = pytest.mark.browser
PATIENCE = 240_000


def begin(page: Any, stories: str = "100", minutes: str = "0.1") -> None:
    page.get_by_role("textbox", name="Stories").fill(stories)
    page.get_by_role("textbox", name="Stories").press("Tab")
    page.get_by_role("textbox", name="Minutes").fill(minutes)
    page.get_by_role("textbox", name="Minutes").press("Tab")
    page.get_by_role("button", name="Start", exact=True).click()


def newest(work: Path) -> RunFolder:
    jobs = [each for each in work.iterdir() if (each / "job.json").is_file()]
    return RunFolder(max(jobs, key=lambda each: (each / "job.json").stat().st_mtime) / "out")


@pytest.fixture(scope="module")
def trained(browser: Any, studio: str, work: Path) -> RunFolder:
    """A run that was begun in the page and came to its end."""
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{studio}/#/train?lang=en")
    begin(page)
    page.get_by_role("link", name="Write with it").wait_for()
    page.locator("li", has_text="Stories, 0.10 min").get_by_text("done").wait_for()
    page.close()
    return newest(work)


def test_the_page_shows_what_the_run_measured(enter: Opened, trained: RunFolder) -> None:
    page = enter("train", run=trained.path.parent.name)
    losses = [row["loss_nats"] for row in trained.metrics() if "learning_rate" in row]
    told = page.get_by_role("img").first
    told.wait_for()
    steps = trained.about()["training"]["steps"]
    assert told.get_attribute("aria-label") == (
        f"The loss of Stories, 0.10 min fell from {losses[0]:.2f} to {losses[-1]:.2f} in {steps:,} steps."
    )
    best = trained.best()
    assert best is not None
    assert page.get_by_text(f"{best['bits_per_byte']:.3f} bits per byte").first.is_visible()
    page.get_by_role("heading", name="The doctor's word").wait_for()
    measured = page.get_by_role("row", name="memory, MB").inner_text()
    last = [row for row in trained.metrics() if "memory_bytes" in row][-1]["memory_bytes"]
    assert f"{round(last / 1e6):,}" in measured


@pytest.mark.parametrize("model", ["bert", "bert-classifier", "seq2seq", "vit"])
def test_every_family_s_training_is_looked_back_at(enter: Opened, families: Path, model: str) -> None:
    page = enter("train", run=model)
    run = RunFolder(families / model)
    losses = [row["loss_nats"] for row in run.metrics() if "learning_rate" in row]
    assert sum(losses[-5:]) < 0.6 * sum(losses[:5]), "it has learned"
    told = page.get_by_role("img").first
    told.wait_for()
    assert told.get_attribute("aria-label") == (
        f"The loss of {model} fell from {losses[0]:.2f} to {losses[-1]:.2f} in {len(losses):,} steps."
    )
    last = [row for row in run.metrics() if "tokens_per_second" in row][-1]["tokens_per_second"]
    assert f"{round(last):,}" in page.get_by_role("row", name="tokens a second").inner_text()


def test_its_model_is_at_hand_in_other_rooms(enter: Opened, trained: RunFolder) -> None:
    page = enter("tokens", m=trained.path.parent.name)
    page.get_by_role("region", name="Stories, 0.10 min").wait_for()


@pytest.mark.parametrize(("width", "lang", "theme"), LOOKS)
def test_nobody_is_kept_out(enter: Opened, trained: RunFolder, width: int, lang: str, theme: str) -> None:
    page = enter("train", width=width, lang=lang, theme=theme)
    page.get_by_role("img").first.wait_for()
    assert faults(page) == []
    assert sideways(page) == 0


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
