"""Measure how long a studio user waits, on loopback, for the first paint, a usable page and the first generated text.

    python benchmarks/first_use.py [--rounds 15]

``kotha serve`` runs with the bundled model, opened as by ``kotha open``: the model is loaded when the address is
printed. Each round starts with a new browser profile and an empty cache: the page loads, shows a greeting, and the
model continues the opening of a story. Then the same browser opens the page again. Times are measured by the page's own
clock, from the start of the navigation. The page is usable once its text field is shown and its button is enabled. The
browser shares the cores with the server, and other processes affect the figures, so the load is recorded with them.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import record

CHROMIUM = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
# Checked once per frame: whether the button is shown, and whether there is more text than was typed.
WATCH = """
  window.seen = {};
  const look = () => {
    const field = document.querySelector("main textarea");
    const button = document.querySelector("main form button, main .button");
    if (field && button && !button.disabled && !("usable" in seen)) seen.usable = performance.now();
    const typed = field?.value.trim() ?? "";
    const written = document.querySelector(".ribbon")?.textContent.trim() ?? "";
    if (typed && written.startsWith(typed) && written.length > typed.length) seen.letter = performance.now();
    if (!("letter" in seen)) requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
"""


@contextmanager
def served() -> Iterator[str]:
    """Return the studio's address, once the model is loaded."""
    command = [sys.executable, "-m", "kotha", "serve", "--port", "0", "--device", "cpu"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            url = server.stderr.readline().split(" at ")[1].split("/v1")[0]
            urllib.request.urlopen(f"{url}/ready", timeout=120).close()
            yield url
        finally:
            server.terminate()


def visit(context: Any, url: str, greeted: bool) -> dict[str, float]:
    """Time one visit in milliseconds; a returning browser is not greeted, so no text is generated automatically."""
    page = context.new_page()
    page.add_init_script(WATCH)
    page.goto(url)
    wanted = "usable" if greeted else "letter"
    end = time.monotonic() + 30
    while wanted not in (seen := dict(page.evaluate("window.seen"))):  # the page's policy forbids waiting inside it
        if time.monotonic() > end:
            raise SystemExit(f"no text was shown within 30 seconds: {seen}")
        time.sleep(0.02)
    seen["paint"] = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
    page.wait_for_timeout(1500)  # wait until the text is complete
    page.close()
    return {name: round(value, 1) for name, value in seen.items()}


def summary(visits: list[dict[str, float]]) -> dict[str, Any]:
    """Return the median and the maximum of each time."""
    return {
        name: {"median_ms": statistics.median(each[name] for each in visits), "worst_ms": max(e[name] for e in visits)}
        for name in ("paint", "usable", "letter")
        if name in visits[0]
    }


def main() -> None:
    from playwright.sync_api import sync_playwright

    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rounds", type=int, default=15)
    options = asked.parse_args()
    first, again, loads = [], [], []
    with served() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=CHROMIUM)
        for _ in range(options.rounds + 1):
            loads.append(round(os.getloadavg()[0], 2))
            context = browser.new_context(viewport={"width": 1400, "height": 900})
            first.append(visit(context, url, greeted=False))
            again.append(visit(context, url, greeted=True))
            context.close()
            time.sleep(1)
        browser.close()
    figures = {
        "rounds": options.rounds,  # the first visit is excluded, because it also starts the browser's processes
        "first_visit": summary(first[1:]),
        "second_visit": summary(again[1:]),
        "load_before_each": loads[1:],
        "visits": first[1:],
    }
    record.save("first_use", figures, ["torch", "uvicorn", "playwright"])


if __name__ == "__main__":
    main()
