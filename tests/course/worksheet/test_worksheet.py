"""The worksheet: its numbers match the workshop, NumPy and torch, and its arithmetic gives the results shown."""

import math
import re
from typing import Any

import numpy as np
import pytest
import torch
from tests.course.worksheet.made import MODERN, as_model, random_model, told_by
from torch import Tensor, nn

from kotha.artifacts import model_folder as bundle
from kotha.artifacts.model_folder import Bundle
from kotha.course.worksheet.builtin_sheets import for_paper, student_sheet, workshop_sheet
from kotha.course.worksheet.model import SAME, check, find_site, model_sheet, read_head
from kotha.course.worksheet.page import as_json, sheet_view
from kotha.course.worksheet.sheet import Sheet
from kotha.errors import UsageError
from kotha.inside.trace import trace
from kotha.model.config import BERTConfig, GPTConfig, Seq2SeqConfig
from kotha.model.family import build
from kotha.storage import bundled
from kotha.text.tokenizer.trainers import train

SMALL: dict[str, Any] = {"d_model": 16, "n_heads": 4, "d_ff": 24, "n_layers": 2, "vocab_size": 50, "context_length": 12}
CONFIGS = {
    "gpt": GPTConfig(**SMALL),
    "gpt-modern": GPTConfig(**SMALL, **MODERN),
    "bert": BERTConfig(**SMALL),
    "seq2seq": Seq2SeqConfig(**SMALL),
    "seq2seq-pre": Seq2SeqConfig(**SMALL, norm_order="pre"),
}
PLACES = [
    ("gpt", "blocks.1.attention"),
    ("gpt-modern", "blocks.1.attention"),
    ("bert", "blocks.0.attention"),
    ("seq2seq", "encoder.1.attention"),
    ("seq2seq", "decoder.1.attention"),
    ("seq2seq", "decoder.1.cross"),
    ("seq2seq-pre", "decoder.0.cross"),
]
MASKED = [("gpt", "blocks.1.attention"), ("gpt-modern", "blocks.1.attention"), ("seq2seq", "decoder.1.attention")]


def made(name: str) -> tuple[nn.Module, list[Tensor]]:
    return random_model(CONFIGS[name], 3, 5, 7 if name.startswith("seq2seq") else None)


def read(name: str, place: str, head: int = 2) -> tuple[Sheet, Any]:
    model, inputs = made(name)
    asking = inputs[0] if place.startswith("encoder") else inputs[-1]
    looked_at = inputs[0] if place.endswith("cross") else asking
    labels = [[f"t{number}" for number in range(each.shape[1])] for each in (asking, looked_at)]
    with trace(model) as seen:
        model(*inputs)
    return read_head(model, inputs, place, head, *labels), seen


def test_the_workshops_answers() -> None:
    found = workshop_sheet().matrices
    for name, expected in {
        "Q": [[0.37, 0.57], [0.39, 0.34], [0.30, 0.55]],
        "K": [[0.57, 0.37], [0.34, 0.39], [0.55, 0.30]],
        "V": [[0.74, 0.54], [0.35, 0.55], [0.51, 0.45]],
        "mask": [[1, 0, 0], [1, 1, 0], [1, 1, 1]],
        "weights": [[1, 0, 0], [0.514651, 0.485349, 0], [0.341432, 0.327712, 0.330856]],
        "output": [[0.74, 0.54], [0.550714, 0.544853], [0.536095, 0.5135]],
    }.items():
        assert found[name] == pytest.approx(np.array(expected), abs=1e-6), name
    assert np.isneginf(found["masked"]).tolist() == (found["mask"] == 0).tolist()


def test_the_workshops_powers_are_not_shifted() -> None:
    """Question 4 raises e to the score itself; a model's sheet subtracts the row's largest score first."""
    sheet = workshop_sheet()
    assert "largest" not in sheet.steps
    assert sheet.matrices["powers"][1, 0] == pytest.approx(math.exp(sheet.matrices["scores"][1, 0]))
    assert "largest" in read("gpt", "blocks.0.attention")[0].steps


@pytest.mark.parametrize(("name", "place"), PLACES)
def test_a_models_sheet_matches_torch(name: str, place: str) -> None:
    sheet, seen = read(name, place)
    key_head = 1 if name == "gpt-modern" else 2
    exact = 1e-6 if name == "gpt-modern" else 1e-9  # torch's angles are float32
    for step, where in {"Q": "queries", "K": "keys", "V": "values", "scores": "scores", "weights": "weights"}.items():
        head = key_head if step in "KV" else 2
        assert sheet.matrices[step] == pytest.approx(seen[f"{place}.{where}"][0, head].numpy(), abs=exact), step
    assert sheet.matrices["output"] == pytest.approx(seen[f"{place}.head_outputs"][0, 2].numpy(), abs=exact)
    assert ("mask" in sheet.steps) == ((name, place) in MASKED)


@pytest.mark.parametrize(("name", "place"), PLACES)
def test_one_head_recomputed_in_numpy(name: str, place: str) -> None:
    """Recompute the sheet from X and W without its operations, with rotary positions as complex numbers."""
    given = read(name, place)[0].matrices
    source = given.get("M", given["X"])
    q = given["X"] @ given["W_Q"] + given["b_Q"]
    k, v = (source @ given[f"W_{letter}"] + given[f"b_{letter}"] for letter in "KV")
    if name == "gpt-modern":
        turns = np.exp(1j * np.outer(np.arange(5), [1.0, 10_000**-0.5]))
        q, k = (turned(normed(each, given[f"g_{letter}"]), turns) for each, letter in ((q, "Q"), (k, "K")))
    scores = q @ k.T / math.sqrt(q.shape[1])
    if "mask" in given:
        scores[np.triu_indices_from(scores, 1)] = -np.inf
    powers = np.exp(scores - scores.max(1, keepdims=True))
    assert given["output"] == pytest.approx(powers / powers.sum(1, keepdims=True) @ v)


def normed(x: Any, gain: Any) -> Any:
    return x / np.sqrt(np.mean(x**2, axis=1, keepdims=True) + 1e-6) * gain


def turned(x: Any, turns: Any) -> Any:
    pairs = (x[:, :2] + 1j * x[:, 2:]) * turns
    return np.concatenate((pairs.real, pairs.imag), axis=1)


def test_every_extra_operation_of_a_model_is_a_separate_step() -> None:
    assert {"Q0", "b_Q", "Q"} <= read("gpt", "blocks.0.attention")[0].steps.keys()
    modern = read("gpt-modern", "blocks.0.attention")[0]
    extras = "places speeds angles Q0 b_Q Q1 size_Q g_Q Q2 Q V0 V"
    assert set(extras.split()) <= modern.steps.keys()
    assert "share these keys" in str(modern.remarks[0])
    assert {"M"} <= read("seq2seq", "decoder.0.cross")[0].steps.keys()


def every_line(sheet: Sheet, precision: int) -> list[str]:
    """Yield the arithmetic of every cell."""
    worked = [step for step in sheet.steps.values() if step.operation is not None]
    return [sheet.arithmetic(step.name, *at, precision) for step in worked for at in np.ndindex(step.values.shape)]


@pytest.mark.parametrize(("name", "place"), PLACES)
def test_the_written_arithmetic_gives_the_written_result(name: str, place: str) -> None:
    """Each line of arithmetic is evaluated as Python; with all decimals, the result must be exact."""
    sheet = read(name, place)[0]
    lines = every_line(sheet, 15)
    assert len(lines) > 200
    computed = 0
    for line in lines:
        _, done, result = line.split(" = ") if "mask" not in line else ("", "0", "0")
        if "…" not in done:
            assert evaluated(done) == pytest.approx(evaluated(result), abs=1e-9), line
            computed += 1
    assert computed > 100


def test_small_numbers_can_be_reproduced_with_four_decimals() -> None:
    """The bundled model divides queries near 0.01 by sizes near 0.01, and rotates by angles of 0.0001."""
    sheet = model_sheet(bundle.load(bundled.FOLDER), "নদীর ধারে")
    smallest, computed = 1.0, 0
    for line in every_line(sheet, 4):
        if "…" in line or "mask" in line:
            continue
        _, done, result = line.split(" = ")
        # A difference has the rounding errors of its operands.
        forgiven = 1e-4 if "cos" in done else 0.0
        assert evaluated(done) == pytest.approx(evaluated(result), rel=1e-3, abs=forgiven), line
        smallest, computed = min(smallest, abs(evaluated(result)) or 1.0), computed + 1
    assert computed > 500 and smallest < 1e-3
    shown = {step.name: step for step in sheet_view(sheet).steps}
    assert "Q1[4,2] = 0.002083 / 0.01194 × 1.0318 = 0.1801" in shown["Q1"].sums


def evaluated(text: str) -> float:
    plain = text.replace("×", "*").replace("−∞", "-inf").replace("−", "-").replace("²", "**2").replace("e^", "e**")
    plain = re.sub(r"√(\d+)", r"sqrt(\1)", plain).replace("√(", "sqrt(")
    names = {"e": math.e, "inf": math.inf, "sqrt": math.sqrt, "cos": math.cos, "sin": math.sin, "max": max}
    return float(eval(plain, {"__builtins__": {}}, names))


def test_the_workshop_s_hint_is_reproduced_exactly() -> None:
    shown = {step.name: step for step in sheet_view(workshop_sheet()).steps}
    assert shown["Q"].sums[0] == "Q[1,1] = 1.0×0.1 + 0.5×0.3 + 0.2×0.2 + 0.8×0.1 = 0.37"
    assert shown["scores"].sums[0] == "scores[1,1] = 0.4218 / √2 = 0.298258"
    assert shown["masked"].rows[0] == ["বাংলাদেশ", "0.298258", "−∞", "−∞"]
    assert shown["Q"].rows[2] == ["সুদ", "0.30", "0.55"]
    assert shown["X"].given and not shown["Q"].given and not shown["X"].sums


def test_a_large_matrix_shows_its_ends_and_the_arithmetic_of_the_last_row() -> None:
    sheet = read("gpt", "blocks.0.attention")[0]
    shown = {step.name: step for step in sheet_view(sheet).steps}
    assert shown["X"].header == ["", *"1234567", "…", "15", "16"]
    assert [row[0] for row in shown["W_Q"].rows] == [*"12345", "…", "15", "16"]
    assert str(shown["W_Q"].remark) == "Part of a 16 × 4 matrix; the JSON output contains the full matrix."
    assert all(line.startswith("scores[5,") for line in shown["scores"].sums)
    assert " + … + " in shown["Q0"].sums[0]


def test_json_has_all_numbers_and_null_for_masked_scores() -> None:
    found: Any = as_json(workshop_sheet())
    assert {*SAME, "X", "W_Q", "W_K", "W_V", "tokens", "text", "layer", "head"} <= found.keys()
    assert found["masked"][0][1:] == [None, None]
    assert (found["layer"], found["head"], found["place"]) == (0, 0, None)
    unmasked = as_json(read("bert", "blocks.0.attention")[0])
    assert unmasked["masked"] == unmasked["scores"]


def test_a_difference_from_torch_is_detected() -> None:
    sheet, seen = read("gpt", "blocks.0.attention")
    values = seen["blocks.0.attention.values"][0, 2]
    check(sheet, {"V": values})
    with pytest.raises(AssertionError, match="V differs from torch"):
        check(sheet, {"V": values + 1e-3})
    with pytest.raises(AssertionError, match="masked differs from torch"):
        check(sheet, {"masked": seen["blocks.0.attention.scores"][0, 2]})


def test_other_sheets_are_drawn_and_differ_by_seed() -> None:
    first, second = (student_sheet("4x6x3", seed).matrices for seed in (1, 2))
    assert first["output"].shape == (4, 3) and not np.array_equal(first["X"], second["X"])
    with pytest.raises(UsageError, match="size='1x6x3' is not TOKENSxWIDTHxHEAD with each number from 2 to 12"):
        student_sheet("1x6x3")


@pytest.mark.parametrize(("size", "seed"), [(None, None), ("4x6x3", 1), ("12x5x2", 7)])
def test_the_exercise_sheet_matches_torch(size: str | None, seed: int | None) -> None:
    """The sheet is computed without torch, so this test compares every number with a model."""
    by_hand = student_sheet(size, seed)
    tokens, model = torch.arange(len(by_hand.tokens))[None], as_model(by_hand.matrices)
    by_torch = read_head(model, [tokens], "blocks.0.attention", 0, by_hand.tokens, shifted=False)
    assert list(by_hand.steps) == list(by_torch.steps)
    for name, step in by_hand.steps.items():
        np.testing.assert_allclose(step.values, by_torch.steps[name].values, atol=1e-12, err_msg=name)


def test_a_pruned_model_keeps_the_names_of_its_heads() -> None:
    _, inputs = made("gpt")
    pruned = build(CONFIGS["gpt"].replace(removed_heads=("blocks.0.attention.1",)))
    sheet = read_head(pruned, inputs, "blocks.0.attention", 2, list("abcde"))
    assert sheet.head == 2
    with pytest.raises(UsageError, match=r"blocks.0.attention has no head 1; its heads are 0, 2, 3"):
        read_head(pruned, inputs, "blocks.0.attention", 1, list("abcde"))


def bundle_of(name: str) -> Bundle:
    torch.manual_seed(0)
    texts = ["নদীর ধারে ছোট্ট গ্রাম", "ক্লান্ত কৃষক বাড়ি ফেরে"]
    tokenizer = train(texts, "wordpiece", vocab_size=512) if name == "bert" else train(texts, "char", level="akshara")
    config = CONFIGS[name].replace(vocab_size=tokenizer.vocab_size, context_length=32)
    model = build(config)
    return Bundle(model.bfloat16().eval() if name == "gpt-modern" else model.eval(), tokenizer)


@pytest.mark.parametrize("name", ["gpt", "gpt-modern", "bert", "seq2seq"])
def test_a_sheet_for_every_text_architecture(name: str) -> None:
    target = "গ্রাম" if name == "seq2seq" else None
    part = "cross" if name == "seq2seq" else "attention"
    sheet = model_sheet(bundle_of(name), "ছোট্ট নদী", target=target, part=part, layer=1, head=3)
    assert "ছো" in sheet.key_tokens[0 if name == "seq2seq" else 1], "after the start token"
    assert (sheet.tokens[0] == "[CLS]") == (name == "bert")
    assert sheet.matrices["weights"].sum(1) == pytest.approx(np.ones(len(sheet.tokens)))
    result = told_by(sheet_view(sheet).html)
    assert [step["title"]["en"] for step in result["solved"]] == [str(step.title) for step in sheet.steps.values()]
    assert result["target"] == target
    # The part that is feasible by hand is an exercise; a model's sheet has no score file.
    paper = for_paper(sheet)
    assert [step["name"] for step in result["asked"]["en"]] == list(paper.steps)
    for step in result["asked"]["en"]:
        values = [[-np.inf if each is None else each for each in row] for row in step["values"]]
        assert np.array(values) == pytest.approx(paper.steps[step["name"]].values, rel=1e-11)
    assert result["called"] is None


def test_a_text_too_long_to_do_by_hand_is_only_shown() -> None:
    sheet = model_sheet(bundle_of("gpt"), "ছোট্ট নদী " * 9)
    result = told_by(sheet_view(sheet).html)
    assert result["asked"] is None and "too large to do by hand" in result["why_not"]
    assert len(result["solved"]) == len(sheet.steps)


@pytest.mark.parametrize(
    ("stack", "layer", "part", "wording"),
    [
        (None, 2, "attention", "no attention module 'decoder.2.attention'; did you mean 'decoder.1.attention'"),
        ("encoder", 0, "cross", "no attention module 'encoder.0.cross'"),
        ("encodr", 0, "attention", "did you mean 'encoder.0.attention'"),
    ],
)
def test_an_unknown_attention(stack: str | None, layer: int, part: str, wording: str) -> None:
    known = [f"{stack}.{layer}.attention" for stack in ("encoder", "decoder") for layer in range(2)]
    with pytest.raises(UsageError, match=wording):
        find_site([*known, "decoder.0.cross"], stack, layer, part)
