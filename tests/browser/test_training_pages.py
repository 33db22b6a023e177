"""The pages of a training run in a real browser: the plan and the diagnosis match the library's figures and texts."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.browser.inside_pages import opened, wait_until, written

from kotha.evaluation.doctor.diagnosis import Diagnosis, doctor_page, examine
from kotha.export.targets import supported_targets
from kotha.i18n.catalogue import translate
from kotha.training.plan.render import describe_plan
from kotha.training.plan.step_time import gpu_named
from kotha.training.plan.text_size import TextSize
from kotha.training.request import TrainRequest

SAMPLE = "এক গ্রামে <b>এক</b> রাখাল ছিল।"


def a_run(lowest: int = 40) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A run of 200 steps that overfits after step ``lowest``: its training loss falls, its validation loss rises."""
    config = {
        "model": {"family": "gpt", "n_layers": 2, "d_model": 64, "vocab_size": 900},
        "training": {"steps": 200},
        "data": {"train_tokens": 2000},
        "references": {"uniform": 6.8, "unigram": 5.4},
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


def planned(minutes: float | None = None) -> tuple[dict[str, Any], str]:
    """The plan for a named GPU, which needs no timing, and its page; with a time budget, a design for a text."""
    text = None if minutes is None else TextSize("stories.txt", 5_000_000, 2_000_000, 2_000, None, None)
    preset = "pocket" if minutes is None else None
    given: dict[str, Any] = {"steps": 700} if minutes is None else {}
    request = TrainRequest(preset, "modern", minutes, None, None, gpu_named("t4"), given)
    plan = describe_plan(request, text, supported_targets)
    return plan.found, plan.page()


def a_plan() -> str:
    return planned()[1]


def a_design() -> str:
    return planned(minutes=5)[1]


def examined() -> Diagnosis:
    return examine(*a_run())


def a_doctor_s_word() -> str:
    return doctor_page("a-run", *a_run(), examined())


@pytest.mark.browser
@pytest.mark.parametrize("language", ["en", "bn"])
def test_the_doctor_s_word_is_the_library_s_in_both_languages(browser, tmp_path: Path, language: str) -> None:
    path, found = written(tmp_path, a_doctor_s_word()), examined()
    assert [each.kind for each in found.findings] == ["memorising"]
    with opened(browser, path, language=language) as page:
        result = page.locator(".note").inner_text()
        for finding in found.findings:
            assert translate(finding.words, language) in result
            assert page.locator(".note li").all_inner_texts() == finding.to_dict()["advice"][language]
        # The predicted and measured values, in the digits of the language.
        assert ("433" if language == "en" else "৪৩৩") in page.locator("tr", has_text="MB").inner_text()
        assert SAMPLE in page.locator("ol li").first.inner_text()  # shown as text, never as markup


@pytest.mark.browser
def test_the_curve_falls_by_the_library_s_figures_over_any_axis(browser, tmp_path: Path) -> None:
    path = written(tmp_path, a_doctor_s_word())
    with opened(browser, path) as page:
        plot = page.locator(".plot").first
        first, last = (row["loss_nats"] for row in (a_run()[1][0], a_run()[1][-2]))
        assert f"{first:.2f}" in plot.get_attribute("aria-label") and f"{last:.2f}" in plot.get_attribute("aria-label")
        page.locator("select").select_option("seconds")
        box = plot.bounding_box()
        page.mouse.move(box["x"] + box["width"] - 40, box["y"] + box["height"] / 2)
        assert wait_until(page, "document.querySelector('.readout').textContent.includes('a-run')")
        over, *result = page.locator(".readout span").last.inner_text().split(" · ")
        name, _, at = over.partition(" ")
        assert name == "seconds" and 0 < float(at) <= 50
        assert [each.rpartition(" ")[0] for each in result] == ["a-run: training batches"]  # only the smoothed line
        raw = 6.8 / (1 + 4 * float(at) / 40)
        assert raw < float(result[0].split()[-1]) < raw + 0.3


@pytest.mark.browser
def test_a_run_in_health_is_told_so_and_what_was_not_looked_at(browser, tmp_path: Path) -> None:
    config, rows = a_run(lowest=200)
    found = examine(config, rows)
    assert found.findings == [] and found.healthy is not None
    path = written(tmp_path, doctor_page("a-run", config, rows, found))
    with opened(browser, path) as page:
        result = page.locator("main").inner_text()
        assert str(found.healthy) in result
        assert "were not computed" in result and "was not found" in result


def test_a_run_that_has_just_begun_has_a_page(tmp_path: Path) -> None:
    config, _ = a_run()
    page = doctor_page("a-run", config, [], examine(config, []))
    assert len(page) < 400_000 and "a-run" in page


@pytest.mark.browser
def test_a_plan_has_the_library_s_figures(browser, tmp_path: Path) -> None:
    found, html = planned()
    path = written(tmp_path, html)
    with opened(browser, path) as page:
        bars = page.locator(".bars section.bars")
        assert bars.nth(0).locator("strong").inner_text() == f"{found['parameters']['total']:,}"
        for part in ("token_embedding", "attention", "feedforward"):
            assert f"{found['parameters'][part]:,}" in bars.nth(0).inner_text()
        assert bars.nth(1).locator("strong").inner_text() == f"{found['memory_bytes']['total'] / 1e9:.2f} GB"
        assert "of 16" in bars.nth(1).inner_text()  # the memory of the GPU
        rows = page.locator(".operations tbody tr").all_inner_texts()
        shown = [[int(cell.replace(",", "")) for cell in row.split("\t")[1:]] for row in rows]
        work = found["flops"]
        parts = [name for name, count in work["training_per_token"].items() if count]
        wanted = [[work["forward_per_token"][name], work["training_per_token"][name]] for name in parts]
        assert shown == [*wanted, [work["forward_per_token_total"], work["training_per_token_total"]]]
        assert f"{found['steps']:,} steps process {found['tokens']:,} tokens" in page.locator("main").inner_text()


@pytest.mark.browser
def test_every_reason_of_a_design_is_said_in_both_languages(browser, tmp_path: Path) -> None:
    found, html = planned(minutes=5)
    path = written(tmp_path, html)
    reasons = found["design"]["reasons"]
    with opened(browser, path) as page:
        assert page.locator(".reasons dd").all_inner_texts() == [str(each["why"]) for each in reasons]
        assert page.locator("pre").inner_text().splitlines() == found["design"]["commands"]
    with opened(browser, path, language="bn") as page:
        result = page.locator(".reasons dt, .reasons dd, .larger p").all_inner_texts()
        assert len(result) > 2 * len(reasons)
        english = re.compile(r"\b(?!(?:modern|Muon|MB|GB|RMSNorm|SwiGLU|QK|norm)\b)[A-Za-z]{3,}")
        assert [each for each in result if english.search(each)] == []
