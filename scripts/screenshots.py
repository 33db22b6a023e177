"""Write docs/images/studio: screenshots of the studio's rooms, taken in Debian's Chromium.

``python scripts/screenshots.py`` starts ``kotha serve`` with the bundled model and a folder for jobs. In a new folder
it first trains two models in the studio, for two and for ten minutes, and fine-tunes the bundled model on three
classes; an existing folder (``--work``) is reused. Then it opens each room, performs typical actions, and takes
screenshots: at desktop size in English with the light theme, and at desktop, tablet and phone size in Bangla. It also
records an animation of generating text and looking inside the model. ``--all FOLDER`` instead takes full-page
screenshots at all sizes, in all languages and themes, for inspection. This requires playwright, pillow and Chromium,
like the tests.
"""

import argparse
import base64
import io
import itertools
import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "images" / "studio"
CHROMIUM = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
HEIGHTS = {1400: 900, 820: 1100, 390: 844}
FILM = (1050, 675)  # three quarters of the desktop size
PHONE = 390  # a high-resolution touch screen
PATIENCE = 1800
BANGLA_DIGITS = str.maketrans("0123456789", "০১২৩৪৫৬৭৮৯")

OPENING = "নদীর ধারে"
SENTENCE = "বাংলাদেশের নদীর ধারে ছোট একটি গ্রামে"
NEWS = "করমগাছি গ্রামে বন্যায় ১৫৮টি ঘর ক্ষতিগ্রস্ত হয়েছে। চেয়ারম্যান জানান, ত্রাণ পৌঁছানো হয়েছে।"


@dataclass(frozen=True)
class Look:
    """The screen size, language and theme in which a page is shown."""

    width: int
    language: str
    theme: str

    def __str__(self) -> str:
        return f"{self.width}-{self.language}-{self.theme}"


KEPT = [Look(1400, "en", "light"), Look(1400, "bn", "dark"), Look(820, "bn", "light"), Look(390, "bn", "dark")]
ALL = [Look(*each) for each in itertools.product(HEIGHTS, ("en", "bn"), ("light", "dark"))]


@dataclass(frozen=True)
class Work:
    """The jobs that were trained before the screenshots, by id, which is also the name of the model."""

    longer: str
    shorter: str
    classifier: str


def ask(url: str, body: dict[str, Any] | None = None) -> Any:
    """Send a request to the server and return its response."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Start a server with the bundled model; return its address."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "kotha", "serve", "--port", "0", "--jobs", str(folder)]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        yield server.stderr.readline().split(" at ")[1].split("/v1")[0]
    finally:
        server.terminate()
        server.wait(60)
        server.stderr.close()


def finished(url: str, **job: Any) -> str:
    """Return the id of a finished job with this name; start a new one if there is none."""
    there = [each["id"] for each in ask(f"{url}/api/jobs") if each["name"] == job["name"]]
    id = there[0] if there else str(ask(f"{url}/api/jobs", job)["id"])
    end = time.monotonic() + PATIENCE
    while (state := ask(f"{url}/api/jobs/{id}")["state"]) != "done":
        if state != "running" or time.monotonic() > end:
            raise SystemExit(f"the job {id} ({job['name']}) is {state}; see its log.txt")
        time.sleep(2)
    return id


def prepare(url: str) -> Work:
    """Train two models and a classifier, unless they exist."""
    shorter = finished(url, kind="learn", name="গল্প, ২ মিনিট", stories=2000, minutes=2, seed=0)
    longer = finished(url, kind="learn", name="গল্প, ১০ মিনিট", stories=2000, minutes=10, seed=0)
    table = ask(f"{url}/api/examples/classify")
    name = "তিন রকম লেখা"
    file = ask(f"{url}/api/files", {"text": table["text"], "file_type": table["file_type"], "name": name})["id"]
    classifier = finished(url, kind="finetune", use="classify", name=name, model="box", table=file, epochs=2)
    return Work(longer, shorter, classifier)


Scene = Callable[[Any, Work | None], None]
Image = bytes  # in the form that the browser returns


def room(page: Any, *place: str, **query: str) -> None:
    """Open a room of the studio, in the language and theme of the page."""
    asked = "&".join(f"{name}={quote(value)}" for name, value in query.items())
    page.evaluate("where => { location.hash = where }", f"#/{'/'.join(place)}?{asked}")
    page.locator("h1").wait_for()


def write(page: Any, work: Work) -> None:
    """Show a generated text with its colours, a branch, and the alternatives to a word."""
    room(page, "write", m="box", x=OPENING, n="40", seed="3")
    let_it_write(page)
    point_at(page, 9)
    page.locator(".others li button:enabled").first.click()
    written(page)
    point_at(page, 14)


def unseen() -> str:
    """Return twelve stories that are not in the training data, one per paragraph."""
    from kotha import write_stories

    with tempfile.TemporaryDirectory() as folder:
        write_stories(Path(folder) / "stories.jsonl", documents=12, seed=77)
        rows = (Path(folder) / "stories.jsonl").read_text(encoding="utf-8").splitlines()
    return "\n\n".join(" ".join(json.loads(row)["text"].split()) for row in rows)


def let_it_write(page: Any) -> None:
    page.locator("main .primary").click()
    written(page)


def written(page: Any) -> None:
    page.locator(".rate", has_text=re.compile(r"\S")).wait_for()
    page.locator("main .primary").wait_for()


def point_at(page: Any, token: int) -> None:
    page.locator(".ribbon [role=option]").nth(token).click()
    page.locator(".others li").first.wait_for()


def look(page: Any, work: Work) -> None:
    """Show the predictions of each layer, and one cell of them."""
    room(page, "look", m="box", x=SENTENCE, show="guess", r="4", c="6")
    page.locator('table[role="grid"] tbody tr').first.wait_for()


def look_block(page: Any, work: Work) -> None:
    """Show an opened layer, with its matrices in the order of computation."""
    room(page, "look", "blocks.3", m="box", x=SENTENCE, r="4")
    page.locator(".part canvas").nth(8).wait_for()


def look_attention(page: Any, work: Work) -> None:
    """Show the attention of a head as lines."""
    room(page, "look", "blocks.2.attention", m="box", x=SENTENCE, r="6", h="1", v="lines")
    page.locator(".lines li").first.wait_for()


def look_number(page: Any, work: Work) -> None:
    """Show how one attention score is computed."""
    room(page, "look", "blocks.3.attention", "scores", m="box", x=SENTENCE, r="5", c="3", h="1")
    page.get_by_role("complementary").locator("output").wait_for()


def hand(page: Any, work: Work) -> None:
    """Show a row of Q computed by hand, with a mistake that the page identifies."""
    from kotha.course.worksheet.builtin_sheets import workshop_sheet

    room(page, "hand", "Q", r="1", c="1")
    sheet = workshop_sheet().matrices
    digits = BANGLA_DIGITS if page.evaluate("document.documentElement.lang") == "bn" else {}
    for row, column, of in ((0, 0, "Q"), (0, 1, "Q"), (1, 0, "Q"), (1, 1, "K")):  # the last one with W_K, not W_Q
        field = page.locator(f'.meet [data-cell="{row},{column}"]')
        field.fill(f"{sheet[of][row, column]:.2f}".translate(digits))
        field.press("Enter")
    page.locator(".verdict").wait_for()


def mini(page: Any, work: Work) -> None:
    """Show a model with a few hundred weights that was trained on a sentence."""
    room(page, "hand", "mini")
    page.locator("figcaption").wait_for()
    page.locator(".fields select").first.select_option("5")
    page.locator(".controls .primary").click()
    page.wait_for_timeout(400)
    page.locator(".controls .primary").click()
    page.locator(".matrices button").nth(9).click()


def tokens(page: Any, work: Work) -> None:
    """Show a text tokenized by several tokenizers, and their cards."""
    room(page, "tokens", m="box", x="ক্ষমা চেয়ে রহিম বলল, “বাংলাদেশ ব্যাংক ২০২৪ সালে সুদ বৃদ্ধি করেছে।”")
    page.locator(".piece").nth(20).wait_for()


def design(page: Any, work: Work) -> None:
    """Show the design for ten minutes and five megabytes of text on this machine, and its cost."""
    room(page, "design")
    page.locator(".left form .button").click()
    page.locator(".left form p[aria-live]").wait_for(timeout=300_000)
    page.locator(".right[aria-busy=false] section.bars").nth(2).wait_for()


def train(page: Any, work: Work) -> None:
    """Show two training curves in one plot."""
    room(page, "train", run=work.longer, **{"with": work.shorter})
    page.get_by_role("img").first.wait_for()
    page.locator("#doctor").wait_for()
    if page.viewport_size["width"] == PHONE:
        page.locator("figure").first.evaluate("figure => scrollBy(0, figure.getBoundingClientRect().top - 64)")


def compare(page: Any, work: Work) -> None:
    """Show a comparison of models on a text that none of them was trained on."""
    room(page, "compare", runs=f"box,{work.longer},{work.shorter}")
    page.locator("main textarea").fill(unseen())
    page.locator("main .primary").click()
    page.locator("tbody tr").nth(2).wait_for(timeout=300_000)
    page.locator("main textarea").evaluate("field => { field.scrollTop = 0; field.blur() }")


def judge(page: Any, work: Work) -> None:
    """Show a blind pair of texts to judge."""
    room(page, "compare", "judge", m="box", b=work.longer)
    page.locator("main input[type=text]").first.fill("মিনা")
    page.locator("main .primary").click()
    page.locator("main article").first.wait_for()


def teach(page: Any, work: Work) -> None:
    """Show a classifier with its prediction for a text, the influence of each word, and its scores."""
    room(page, "teach", "classify", m=work.classifier, job=work.classifier, x=NEWS)
    page.locator(".why").click()
    page.locator(".words span").first.wait_for()
    page.locator(".score").wait_for()


ROOMS: dict[str, Scene] = {
    "write": write, "look": look, "hand": hand, "tokens": tokens, "design": design, "train": train, "compare": compare,
    "teach": teach,
}  # fmt: skip
CLOSER: dict[str, Scene] = {
    "look-block": look_block, "look-attention": look_attention, "look-number": look_number, "mini": mini,
    "judge": judge,
}  # fmt: skip


def opened(browser: Any, url: str, look: Look, reduced_motion: str | None = "reduce") -> Any:
    """Open a page with this screen size, language and theme."""
    size = {"width": look.width, "height": HEIGHTS[look.width]}
    phone = {"is_mobile": True, "has_touch": True, "device_scale_factor": 2} if look.width == PHONE else {}
    page = browser.new_page(viewport=size, reduced_motion=reduced_motion, **phone)
    page.set_default_timeout(120_000)
    page.goto(f"{url}/#/compare?lang={look.language}&theme={look.theme}")
    page.locator("h1").wait_for()
    return page


def keep(shot: bytes, place: Path) -> None:
    """Write a picture as a small file."""
    from PIL import Image

    place.parent.mkdir(parents=True, exist_ok=True)
    Image.open(io.BytesIO(shot)).convert("RGB").save(place, lossless=True, quality=100, method=6)


def filmed(page: Any, act: Callable[[], None]) -> list[tuple[Image, int]]:
    """Record the frames that the browser paints during an action, in real time."""
    painted: list[tuple[Image, float]] = []
    session = page.context.new_cdp_session(page)

    def take(frame: dict[str, Any]) -> None:
        painted.append((base64.b64decode(frame["data"]), frame["metadata"]["timestamp"]))
        session.send("Page.screencastFrameAck", {"sessionId": frame["sessionId"]})

    session.on("Page.screencastFrame", take)
    session.send("Page.startScreencast", {"format": "png", "everyNthFrame": 1})
    act()
    session.send("Page.stopScreencast")
    painted.sort(key=lambda each: each[1])
    return [(shot, round(1000 * (after - at))) for (shot, at), (_, after) in itertools.pairwise(painted)]


def film(page: Any) -> list[tuple[Image, int]]:
    """Record text generation, alternatives and the view inside; return frames with their durations in ms."""
    seen: list[tuple[Image, int]] = []

    def shoot(milliseconds: int) -> None:
        seen.append((page.screenshot(), milliseconds))

    room(page, "write", m="box", x=OPENING, n="90", seed="3")
    page.locator(".bars li").nth(5).wait_for()
    shoot(900)
    seen += filmed(page, lambda: let_it_write(page))
    page.wait_for_timeout(400)
    shoot(900)
    point_at(page, 9)
    page.wait_for_timeout(300)
    shoot(2200)
    for scene, milliseconds in ((look, 2400), (look_block, 2400), (look_attention, 2400), (look_number, 3000)):
        scene(page, None)
        page.wait_for_timeout(600)
        shoot(milliseconds)
    return seen


def keep_film(seen: list[tuple[Image, int]], place: Path) -> None:
    """Write an animation as one small file."""
    from PIL import Image as Pictures

    frames = [
        Pictures.open(io.BytesIO(shot)).convert("RGB").resize(FILM, Pictures.Resampling.LANCZOS) for shot, _ in seen
    ]
    lengths = [milliseconds for _, milliseconds in seen]
    frames[0].save(place, save_all=True, append_images=frames[1:], duration=lengths, loop=0, quality=80, method=6)


def main() -> int:
    """Take the pictures."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, default=ROOT / "kotha-studio", help="folder of the training runs")
    parser.add_argument("--only", nargs="*", default=[], help="only these rooms")
    parser.add_argument("--all", type=Path, help="folder for full-page screenshots in all variants")
    parser.add_argument("--film", action="store_true", help="only the animation")
    parser.add_argument("--url", help="address of a running server that uses this folder")
    given = parser.parse_args()
    with served(given.work) if given.url is None else nullcontext(given.url) as url, sync_playwright() as playwright:
        work = prepare(url)
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=CHROMIUM)
        for name, scene in (ROOMS | CLOSER).items():
            if given.film or (given.only and name not in given.only):
                continue
            for look in KEPT if given.all is None else ALL:
                if name in CLOSER and given.all is None and look != KEPT[0]:
                    continue
                page = opened(browser, url, look)
                scene(page, work)
                page.wait_for_timeout(500)
                place = (given.all or PICTURES) / f"{name}-{look}.webp"
                keep(page.screenshot(full_page=given.all is not None), place)
                print(f"{place} {place.stat().st_size / 1000:.0f} kB", flush=True)
                page.close()
        if given.all is None and not given.only:
            page = opened(browser, url, KEPT[0], reduced_motion=None)
            keep_film(film(page), PICTURES / "studio.webp")
            print(f"{PICTURES / 'studio.webp'} {(PICTURES / 'studio.webp').stat().st_size / 1000:.0f} kB")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
