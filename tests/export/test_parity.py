"""Figures, verdict and messages of a parity report."""

import math
from dataclasses import replace
from typing import Any

import torch

from kotha.export.parity import AWKWARD_LINES, ParityReport, built_in_lines, rows


def shown(report: ParityReport) -> list[list[str]]:
    return [[str(cell) for cell in row] for row in rows(report)]


def told(report: ParityReport) -> list[str]:
    return [str(failure) for failure in report.failures]


FRESH = ParityReport(target="hf", peer="someone 1.0")


def with_logits(report: ParityReport, pairs: Any) -> ParityReport:
    report = replace(report)
    report.compare_logits(pairs)
    return report


def test_the_largest_difference_of_all_pairs_counts() -> None:
    first, second = torch.tensor([[1.0, 2.0, 0.0]]), torch.tensor([[0.0, 5.0, 1.0], [1.0, 0.0, 0.0]])
    shifted = second + torch.tensor([[0.0, 0.0, 0.25], [0.0, 1.5, 0.0]])
    report = with_logits(FRESH, [(first, first), (second, shifted)])
    assert report.max_logit_difference == 1.5
    assert report.positions == 3
    assert report.best_equal == 2 / 3
    assert told(report) == ["logits differ by up to 1.5, but at most 0.0001 is allowed"]


def test_a_nan_is_a_difference() -> None:
    broken = torch.tensor([[math.nan, 1.0]])
    report = with_logits(FRESH, [(broken, broken), (torch.ones(1, 2), torch.ones(1, 2))])
    assert math.isnan(report.max_logit_difference or 0)
    assert not report.passed


def test_quantized_weights_are_judged_by_their_best_tokens() -> None:
    far = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    loose = replace(FRESH, tolerance=None, least_best_equal=0.9)
    assert with_logits(loose, [(far, far * 3)]).passed
    assert told(with_logits(loose, [(far, -far)])) == [
        "the most likely token matches at only 0.0% of positions; at least 90.0% is required"
    ]


def test_lines_that_differ_are_counted_and_the_first_is_shown() -> None:
    report = replace(FRESH)
    report.compare_lines(lambda line: [len(line)], lambda line: [min(len(line), 3)], ["ab", "abcd", "abcde"])
    assert (report.lines, report.lines_different, report.tokens_equal) == (3, 2, False)
    assert repr(report) == "ParityReport(hf: failed; 2 of 3 lines are tokenized differently)"
    assert ["first line that differs", "'abcd'"] in shown(report)
    assert shown(report)[-1] == ["verdict", "FAILED: 2 of 3 lines are tokenized differently"]


def test_an_unchecked_report_neither_passes_nor_fails() -> None:
    report = ParityReport(target="hf", remarks=["not checked: nobody is there"])
    assert (report.tokens_equal, report.checked, report.passed) == (None, False, True)
    assert repr(report) == "ParityReport(hf: nothing was compared)"
    assert shown(report) == [["parity", "not checked: nobody is there"]]
    assert report.to_dict()["max_logit_difference"] is None


def test_built_in_lines_include_the_difficult_ones() -> None:
    lines = built_in_lines(40)
    assert len(lines) == 40
    assert lines[: len(AWKWARD_LINES)] == list(AWKWARD_LINES)
    text = "\n".join(AWKWARD_LINES)
    for mark in ("\u200d", "\u200c", "\u09c7\u09be", "😀", "১", "1", "<|endoftext|>"):
        assert mark in text


def test_a_report_without_limits_does_not_say_passed() -> None:
    compared = {"max_logit_difference": 1.0, "best_equal": 0.7, "positions": 100}
    report = ParityReport("gguf", peer="llama.cpp", tolerance=None, **compared)
    assert shown(report)[-1][1].endswith("is reported, but not checked against a limit")
    assert shown(replace(report, least_best_equal=0.6))[-1] == ["verdict", "passed"]


def test_the_notebook_table_shows_the_verdict_and_escapes_lines() -> None:
    report = ParityReport("hf", peer="it", lines=2, lines_different=1, first_line_different="<script>")
    shown = report._repr_html_()
    assert "FAILED: 1 of 2 lines are tokenized differently" in shown
    assert "<script>" not in shown
