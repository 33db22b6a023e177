"""The frame around the rooms: language, theme, keyboard, a server that does not respond, a required API key."""

from typing import Any

import pytest
from tests.server.conftest import started
from tests.studio.conftest import LOOKS, Opened, check_everyone_can_use_it, sideways

from kotha.server.app import make_app
from kotha.server.settings import ServeSettings

pytestmark = pytest.mark.browser
KEY = "a-key-of-more-than-sixteen-letters"


def test_the_language_changes_in_one_click_and_stays(enter: Opened) -> None:
    page = enter("tokens", lang="bn")
    assert page.locator("html").get_attribute("lang") == "bn"
    assert page.locator("h1").inner_text() == "টোকেন"
    page.get_by_role("button", name="ভাষা বদলে ইংরেজি করুন").click()
    assert page.locator("h1").inner_text() == "Tokenize"
    page.goto(page.url.split("#")[0])
    page.get_by_role("heading", level=1).wait_for()
    assert page.locator("html").get_attribute("lang") == "en", "kept in the browser"


def test_keys_lead_through_the_house(enter: Opened) -> None:
    page = enter("tokens")
    page.locator("main h1").wait_for()
    page.keyboard.press("?")
    assert page.get_by_role("dialog").get_by_role("heading", name="Keys").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Search for a room, model, run or setting…").fill("dark")
    page.keyboard.press("Enter")
    assert page.locator("html").get_attribute("data-theme") == "dark"


# Rooms that show content without any input, and an element of this content.
ROOMS: dict[tuple[str, ...], str] = {
    ("tokens",): "section .piece",
    ("design",): "section.bars",
    ("compare", "table"): "[role=tabpanel] textarea",
    ("compare", "judge"): "[role=tabpanel] input[type=text]",
    **{("teach", tab): ".stage .card" for tab in ("classify", "fill", "translate", "ask")},
}


@pytest.mark.parametrize(("width", "lang", "theme"), LOOKS)
def test_nobody_is_kept_out(enter: Opened, width: int, lang: str, theme: str) -> None:
    for room, there in ROOMS.items():
        page = enter(*room, width=width, lang=lang, theme=theme)
        page.locator(there).first.wait_for()
        check_everyone_can_use_it(page)
        page.close()


def test_a_key_is_asked_for_and_kept_out_of_the_address(browser: Any) -> None:
    app = make_app(settings=ServeSettings(key=KEY), device="cpu")
    for url in started(app):
        page = browser.new_page()
        page.goto(f"{url}/#/tokens?lang=en")
        page.get_by_role("textbox", name="Key").fill(KEY)
        page.get_by_role("button", name="Use this key").click()
        page.get_by_role("region", name="box").wait_for()
        assert KEY not in page.url
        page.close()


def test_a_server_that_goes_is_told_of_and_found_again(browser: Any) -> None:
    page = browser.new_page()
    for url in started(make_app(device="cpu")):
        page.goto(f"{url}/#/tokens?lang=en")
        page.get_by_role("region", name="box").wait_for()
        page.route("**/*", lambda route: route.abort())
        page.get_by_role("textbox", name="Your text").fill("মা")
        page.get_by_text("Your text is safe").wait_for()
        page.unroute_all()
        page.get_by_text("Your text is safe").wait_for(state="detached")
        assert page.get_by_role("textbox", name="Your text").input_value() == "মা"
    page.close()


def test_the_tour_leads_through_the_rooms_and_goes_on_after_a_reload(enter: Opened) -> None:
    page = enter("tokens")
    page.get_by_role("button", name="Two-minute tour").click()
    tour = page.get_by_role("region", name="Two minutes through the studio")
    seen = []
    for count in range(1, 9):
        assert f"{count} of 8" in tour.inner_text()
        seen.append(page.url.split("#/")[1].split("?")[0].split("/")[0])
        if count == 4:
            page.reload()
            tour.wait_for()
        tour.locator("button.primary").click()
    assert seen == ["write", "write", "look", "hand", "tokens", "design", "train", "compare"]
    tour.wait_for(state="detached")


def test_a_room_that_is_left_at_once_asks_for_nothing_more(enter: Opened) -> None:
    """Svelte warns if a timer reads the state of a closed room, and the fixture does not allow warnings."""
    page = enter("write", x="নদীর")
    for pause in (1000, 20):  # a room's code is loaded on the first visit
        for room in ("look", "tokens", "design", "train", "compare", "teach", "write"):
            page.evaluate("room => { location.hash = `#/${room}?m=box&x=নদীর` }", room)
            page.wait_for_timeout(pause)
    page.locator("textarea").first.press_sequentially("ক")
    page.evaluate("location.hash = '#/tokens?m=box'")
    page.wait_for_timeout(1000)
    assert "x=" in page.url, "what was typed last came along"


@pytest.mark.parametrize("width", [390, 820, 1280])
def test_the_tour_covers_nothing_that_it_speaks_of(enter: Opened, width: int) -> None:
    page = enter("write", width=width, height=800)
    if width == 390:
        page.get_by_role("button", name="More").click()
    page.get_by_role("button", name="Tour" if width < 1100 else "Two-minute tour").click()
    tour = page.get_by_role("region", name="Two minutes through the studio")
    tour.get_by_role("button", name="Next").click()
    slider = page.get_by_role("slider", name="top-p")
    slider.scroll_into_view_if_needed()
    strip, there = tour.bounding_box(), slider.bounding_box()
    assert there["y"] >= strip["y"] + strip["height"] or there["y"] + there["height"] <= strip["y"]
    assert page.locator("h1").bounding_box()["y"] + page.evaluate("scrollY") >= strip["height"], "it takes its own room"
    slider.press("ArrowLeft")  # and it can be used
    assert sideways(page) == 0


def test_a_phone_shows_every_room_in_one_order(enter: Opened) -> None:
    page = enter("tokens", width=390)
    links = page.get_by_role("navigation", name="Rooms").get_by_role("link")
    assert [each.inner_text() for each in links.all() if each.is_visible()] == [
        "Write",
        "Look inside",
        "By hand",
        "Tokenize",
    ]
    tops = {name: page.get_by_role("link", name=name).bounding_box() for name in ("Write", "Tokenize")}
    page.get_by_role("button", name="More").click()
    assert page.get_by_role("link", name="Teach it something").is_visible()
    for name, before in tops.items():
        assert page.get_by_role("link", name=name).bounding_box() == before, "what was there stays where it was"
