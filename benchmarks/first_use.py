"""Measure how long a studio user waits on loopback for the first paint, a usable page, the first generated text.

    python benchmarks/first_use.py [--rounds 15]

``kotha serve`` with the bundled model, opened as ``kotha open`` does it: the model is ready when the address is
given. Each round is a browser that was never here, with nothing kept: the page comes, greets, and the model writes on
from a story's opening. Then the same browser comes again. The clock is the page's own, from the start of the
navigation; usable means that the room's field stands and its button can be pressed. The browser shares the cores
with the server, and what else the machine does changes the figures: the load is written down with them.
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
# Looked at once a frame: when the button is there, and when more is written than was typed.
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
    """The studio's address, once the model is open."""
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
    """One visit, in milliseconds; a browser that was here is not greeted, so no letter comes by itself."""
    page = context.new_page()
    page.add_init_script(WATCH)
    page.goto(url)
    wanted = "usable" if greeted else "letter"
    end = time.monotonic() + 30
    while wanted not in (seen := dict(page.evaluate("window.seen"))):  # the page's policy lets nobody wait inside it
        if time.monotonic() > end:
            raise SystemExit(f"nothing to see after half a minute: {seen}")
        time.sleep(0.02)
    seen["paint"] = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
    page.wait_for_timeout(1500)  # let it write on, and be quiet again
    page.close()
    return {name: round(value, 1) for name, value in seen.items()}


def summary(visits: list[dict[str, float]]) -> dict[str, Any]:
    """The middle and the worst of each."""
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
        "rounds": options.rounds,  # the very first, which also starts the browser's own processes, is left out
        "first_visit": summary(first[1:]),
        "second_visit": summary(again[1:]),
        "load_before_each": loads[1:],
        "visits": first[1:],
    }
    record.save("first_use", figures, ["torch", "uvicorn", "playwright"])


if __name__ == "__main__":
    main()
