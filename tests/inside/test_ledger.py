"""The ledger: the lines of arithmetic for a number, recomputed from their terms, give the model's value."""

import math
import random

import pytest
import torch
from tests.inside.small_models import BODIES, TEXT, make

from kotha.inside.hook_points import attentions
from kotha.inside.inputs import ModelInput, read, read_image
from kotha.inside.numbers.arithmetic import BENDS, CellLine, CellSource, Entry
from kotha.inside.numbers.ledger import Ledger, keep
from kotha.inside.trace import record
from kotha.model.family import Model

# Cells tested in each matrix.
TRIED = 6


def given_to(body: str) -> tuple[Model, ModelInput]:
    bundle = make(body)
    if body == "vit":
        return bundle.model, read_image(bundle.model, torch.rand(1, 8, 8, generator=torch.Generator().manual_seed(0)))
    target = {"target": "নদীর ধারে"} if body.startswith("seq2seq") else {}
    return bundle.model, read(bundle.model, bundle.tokenizer, TEXT, **target)


def reckoned(line: CellLine) -> float:
    """Recompute the value of a line from its terms, independently."""
    products = [math.prod(term) for term in line.terms]
    match line.kind:
        case "sum":
            return math.fsum(products)
        case "mean":
            return math.fsum(products) / len(products)
        case "root":
            return math.sqrt(math.fsum(products) / len(products) + line.constant)
        case "over":
            return line.terms[0][0] / line.terms[0][1]
        case "powers":
            return math.fsum(math.exp(a - b) for a, b in line.terms)
        case "largest":
            return max(a for (a,) in line.terms)
        case "hidden":
            return line.value
        case _:
            return BENDS[line.kind](line.terms[0][0])


def cells(entry: Entry) -> list[tuple[int | None, int, int]]:
    drawn = random.Random(entry.site)
    heads: list[int | None] = [*entry.heads] or [None]
    return [(drawn.choice(heads), *(drawn.randrange(size) for size in entry.shape)) for _ in range(TRIED)]


def numbers_of(ledger: Ledger, source: CellSource) -> list[float]:
    matrix = ledger[source.site].matrix(source.head)
    part = matrix[:, source.column] if source.row is None else matrix[source.row]
    if source.row is not None and source.column is not None:
        part = part[source.column : source.column + 1]
    return [float(each) for each in part]


@pytest.mark.parametrize("body", BODIES)
def test_every_cell_can_be_recomputed(body: str) -> None:
    ledger = keep(*given_to(body))
    opened = 0
    for entry in ledger.entries.values():
        if entry.operation is None:
            continue
        for head, row, column in cells(entry):
            where = f"{entry.site}[{head}, {row}, {column}]"
            made, value = (
                entry.operation.recipe(ledger.entries, head, row, column),
                float(entry.matrix(head)[row, column]),
            )
            for line in made.lines:
                assert line.value == pytest.approx(reckoned(line), rel=1e-12, abs=1e-12), where
            scale = max(
                [1.0, *(abs(math.prod(term)) for line in made.lines for term in line.terms if line.kind == "sum")]
            )
            assert made.lines[-1].value == pytest.approx(value, rel=2e-5, abs=3e-6 * scale), where
            assert {each.site for each in made.sources} <= set(entry.operation.operands), where
            known = {number for each in made.sources for number in numbers_of(ledger, each)}
            first = made.lines[0]
            if first.kind == "sum" and first.gives in ("product", "mixed", "copy"):
                assert {factor for term in first.terms for factor in term} <= known, where
            opened += 1
    assert opened > 100


@pytest.mark.parametrize("body", BODIES)
def test_matrices_equal_the_trace(body: str) -> None:
    model, given = given_to(body)
    ledger = keep(model, given)
    missing = []
    for seen in record(model, given):
        if seen.hook_point not in ledger.entries:
            missing.append(seen.hook_point.rpartition(".")[2])
        elif seen.hook_point != "logits" or body != "vit":
            torch.testing.assert_close(ledger[seen.hook_point].values, seen.values)
    # Values that have another name in the ledger, or are not recorded because nothing is masked.
    assert set(missing) <= {"residual_mid", "residual_cross", "masked_scores", "positions"}
    assert ledger.output is not None


def test_uses_of_a_matrix() -> None:
    ledger = keep(*given_to("gpt-grouped"))
    site = "blocks.0.attention"
    assert ledger.uses(f"{site}.queries") == [f"{site}.scores"]
    assert ledger.uses("blocks.0.residual_in") == ["blocks.0.attention_norm", "blocks.0.residual_mid"]
    keys = ledger[f"{site}.keys"]
    assert keys.heads == (0, 1, 2, 3) and keys.places == (0, 0, 1, 1)
    torch.testing.assert_close(keys.matrix(2), keys.matrix(3))
    assert [step for step in ("query", "query_norm", "queries") if f"{site}.{step}" in ledger.entries] == [
        "query", "query_norm", "queries",
    ]  # fmt: skip


def test_a_silenced_head_is_zero_in_the_ledger() -> None:
    model, given = given_to("gpt")
    head = attentions(model)["blocks.1.attention"].heads[2]
    ledger = keep(model, given, [f"blocks.1.attention.{head}"])
    mixed = ledger["blocks.1.attention.head_outputs"]
    assert not mixed.matrix(head).any() and mixed.matrix(0).any()
    assert mixed.operation is not None
    made = mixed.operation.recipe(ledger.entries, head, 1, 0)
    assert made.lines[-1].gives == "silenced" and made.lines[0].value != 0


def test_a_masked_score_has_no_weight() -> None:
    ledger = keep(*given_to("gpt"))
    for site, value in (("masked_scores", -math.inf), ("weights", 0.0)):
        operation = ledger[f"blocks.0.attention.{site}"].operation
        assert operation is not None
        (line,) = operation.recipe(ledger.entries, 0, 0, 1).lines
        assert line.kind == "hidden" and line.value == value
