"""The pages of a training in a real browser: the doctor's word, with the library's own figures and sentences."""

from pathlib import Path
from typing import Any

import pytest
from tests.browser.inside_pages import opened

from kotha.evaluate.doctor.examination import Examination, examine
from kotha.evaluate.doctor.page import doctor_page

SAMPLE = "এক গ্রামে <b>এক</b> রাখাল ছিল।"


def a_run(lowest: int = 40) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A run of 200 steps that learns by heart after ``lowest``: training goes on falling, unseen text rises."""
    config = {
        "model": {"family": "gpt", "n_layers": 2, "d_model": 64, "vocab_size": 900},
        "training": {"steps": 200},
        "data": {"train_tokens": 2000},
        "references": {"ln V": 6.8, "unigram": 5.4},
        "predicted": {"memory_bytes": {"total": 433e6}, "seconds": 64.0},
    }
    rows: list[dict[str, Any]] = []
    for step in range(1, 201):
        measured = {"tokens": 100 * step, "seconds": step / 4, "learning_rate": 1e-3, "gradient_norm": 0.7}
        measured |= {"tokens_per_second": 400.0, "memory_bytes": 451e6}
        rows.append({"step": step, "loss_nats": 6.8 / (1 + step / 40), **measured})
        if step % 20 == 0:
            unseen = 3.2 + abs(step - lowest) / 50
            rows.append(
                {"step": step, "validation": {"loss_nats": unseen, "bits_per_byte": unseen / 4}, "sample": SAMPLE}
            )
    return config, rows


def examined() -> Examination:
    return examine(*a_run())


def a_doctor_s_word() -> str:
    return doctor_page("a-run", *a_run(), examined())


@pytest.mark.browser
@pytest.mark.parametrize("language", ["en", "bn"])
def test_the_doctor_s_word_is_the_library_s_in_both_languages(browser, tmp_path: Path, language: str) -> None:
    path, found = tmp_path / "page.html", examined()
    path.write_text(a_doctor_s_word(), encoding="utf-8")
    assert [each.kind for each in found.findings] == ["memorising"]
    with opened(browser, path, language=language) as page:
        said = page.locator(".note").inner_text()
        for finding in found.findings:
            assert finding.words[language] in said
            assert page.locator(".note li").all_inner_texts() == finding.advice[language]
        # What was predicted and measured, in the digits of the language.
        assert ("433" if language == "en" else "৪৩৩") in page.locator("tr", has_text="MB").inner_text()
        assert SAMPLE in page.locator("ol li").first.inner_text()  # as text, never as markup


@pytest.mark.browser
def test_the_curve_falls_by_the_library_s_figures_over_any_axis(browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(a_doctor_s_word(), encoding="utf-8")
    with opened(browser, path) as page:
        plot = page.locator(".plot").first
        first, last = (row["loss_nats"] for row in (a_run()[1][0], a_run()[1][-2]))
        assert f"{first:.2f}" in plot.get_attribute("aria-label") and f"{last:.2f}" in plot.get_attribute("aria-label")
        page.locator("select").select_option("seconds")
        box = plot.bounding_box()
        page.mouse.move(box["x"] + box["width"] - 40, box["y"] + box["height"] / 2)
        page.wait_for_function("document.querySelector('.readout').textContent.includes('a-run')")
        over, *told = page.locator(".readout span").last.inner_text().split(" · ")
        name, _, at = over.partition(" ")
        assert name == "seconds" and 0 < float(at) <= 50
        assert [each.rpartition(" ")[0] for each in told] == ["a-run: batches"]  # the smoothed line alone
        raw = 6.8 / (1 + 4 * float(at) / 40)
        assert raw < float(told[0].split()[-1]) < raw + 0.3


@pytest.mark.browser
def test_a_run_in_health_is_told_so_and_what_was_not_looked_at(browser, tmp_path: Path) -> None:
    config, rows = a_run(lowest=200)
    found = examine(config, rows)
    assert found.findings == [] and found.healthy is not None
    path = tmp_path / "page.html"
    path.write_text(doctor_page("a-run", config, rows, found), encoding="utf-8")
    with opened(browser, path) as page:
        said = page.locator("main").inner_text()
        assert found.healthy["en"] in said
        assert "were not counted" in said and "data were not found" in said


def test_a_run_that_has_just_begun_has_a_page(tmp_path: Path) -> None:
    config, _ = a_run()
    page = doctor_page("a-run", config, [], examine(config, []))
    assert len(page) < 400_000 and "a-run" in page
