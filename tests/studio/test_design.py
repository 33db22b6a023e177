"""Design: the costs on the page equal the library's."""

import re

import pytest
from tests.browser.inside_pages import wait_until
from tests.studio.conftest import Opened

from kotha.export.targets import supported_targets
from kotha.i18n.catalogue import translate
from kotha.model.parameters import count_parameters
from kotha.model.presets import preset

pytestmark = pytest.mark.browser


def designed(**changes: int) -> int:
    config = preset("pocket").replace(n_kv_heads=changes["n_heads"], **changes)
    return count_parameters(config).total


def test_parameters_are_the_library_s(enter: Opened) -> None:
    page = enter("design", n_layers="6", n_heads="8", d_model="512", vocab_size="16384", context_length="128")
    wanted = designed(n_layers=6, n_heads=8, d_model=512, d_head=64, d_ff=1376, vocab_size=16384, context_length=128)
    page.locator("section.bars strong", has_text=f"{wanted:,}").wait_for()


def test_a_slider_that_moves_is_in_the_address_and_in_the_bars(enter: Opened) -> None:
    page = enter("design")
    total = page.locator("section.bars strong").first
    total.wait_for()
    before = total.inner_text()
    layers = page.get_by_role("textbox", name="Layers")
    layers.fill("৮")  # Bangla digits are accepted
    layers.press("Tab")
    assert wait_until(page, "before => document.querySelector('section.bars strong').innerText !== before", before)
    assert "n_layers=8" in page.url


def test_doors_are_named_in_the_reader_s_language(enter: Opened) -> None:
    page = enter("design", lang="bn")
    for target in supported_targets(preset("pocket")):
        page.locator(".export-targets").get_by_text(translate(target.details, "bn")).wait_for()
    assert "opens" not in page.locator(".export-targets").inner_text()


def test_heads_and_width_always_fit(enter: Opened) -> None:
    page = enter("design", d_model="384", n_heads="6")
    width = page.get_by_role("textbox", name="Width")
    width.fill("512")
    width.press("Tab")
    page.wait_for_url("**n_heads=4**")
    assert page.get_by_role("alert").count() == 0


def test_a_budget_becomes_a_design_and_a_training(enter: Opened) -> None:
    page = enter("design")
    page.get_by_role("button", name="Suggest a model").click()
    page.get_by_text("For 10 minutes and 5 MB of text").wait_for()
    says = page.get_by_text("as just measured")
    says.wait_for()
    result = page.locator(".bars", has=page.get_by_role("heading", name="Time on this machine")).locator("strong")
    # The time per step depends on the machine and its load; the total is the sum over the steps.
    steps, each = re.findall(r"in ([\d,]+) steps; ([\d.]+) s per step", says.inner_text())[0]
    parts = re.findall(r"(\d+) (d|h|min|s)", result.inner_text())
    whole = sum(int(count) * {"d": 86_400, "h": 3600, "min": 60, "s": 1}[unit] for count, unit in parts)
    assert whole == pytest.approx(int(steps.replace(",", "")) * float(each), rel=0.1, abs=60), result.inner_text()
    page.get_by_role("link", name="Train this model on stories").click()
    page.get_by_text("As designed:").wait_for()


def test_the_schedule_moves_by_keys(enter: Opened) -> None:
    page = enter("design", steps="1000", warmup="50", decay="600")
    corner = page.get_by_role("slider", name="Warm-up steps").first
    corner.press("ArrowRight")
    page.wait_for_url("**warmup=60**")
