"""Kinds: only heads that are constructed or trained for a pattern are recognized."""

import re
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from tests.inside.wired_heads import P, V, random_text, set_head, wired
from torch import Tensor, nn

from kotha.inside.heads.kinds import BROAD_THRESHOLD, THRESHOLD, HeadClassifier, HeadKind, Passage, look, probes, rarest
from kotha.inside.heads.study import case_text, evidence_text
from kotha.model.config import BERTConfig, GPTConfig, Seq2SeqConfig
from kotha.model.family import build
from kotha.model.presets import MODERN

STOP = 0  # the most frequent token represents the danda


def judged(model: Any, passages: Sequence[Passage], vocabulary: int = V) -> dict[str, HeadKind]:
    read = torch.cat([each.tokens if each.source is None else each.source for each in passages])
    witness = HeadClassifier(model, rare=rarest(read.bincount(minlength=vocabulary).tolist()), punctuation=[STOP])
    for passage in passages:
        witness.read(look(model, passage))
    context: int = model.config.context_length
    witness.probe(probes(range(1, vocabulary), context, translates=passages[0].source is not None))
    return {each.head: each for each in witness.verdicts()}


def texts(length: int = P, n: int = 4) -> list[Passage]:
    return [Passage(random_text(length, seed)) for seed in range(n)]


def test_hand_wired_heads_are_recognised() -> None:
    found = judged(wired(), texts())
    assert {head: each.kind for head, each in found.items()} == {
        "blocks.0.attention.0": "previous-token",
        "blocks.0.attention.1": "broad",
        "blocks.1.attention.0": "broad",
        "blocks.1.attention.1": "induction",
    }
    previous, induction = found["blocks.0.attention.0"], found["blocks.1.attention.1"]
    assert previous.evidence is not None and induction.evidence is not None
    assert previous.evidence.score > 0.99 and previous.distance == pytest.approx(1, abs=0.05)
    assert previous.evidence.case is not None and previous.evidence.case.distance == -1
    assert induction.evidence.score > 0.9 and induction.scores["previous-token"].score < 0.1
    assert found["blocks.0.attention.0"].scores["induction"].score < 0.1
    assert "100% on the token before; 5% by chance" in str(evidence_text(previous))
    assert case_text(previous.evidence, lambda token: f"<{token}>").endswith("(-1, 1.00)")


def test_measuring_heads_computes_no_logits() -> None:
    model = wired()
    seen = look(model, texts(n=1)[0])
    model.head = None
    again = look(model, texts(n=1)[0])
    assert all(torch.equal(one.weights, other.weights) for one, other in zip(seen, again, strict=True))


def test_cases_come_from_the_text_only() -> None:
    """Induction is measured on repeated random tokens, which are not shown as examples from the text."""
    words = torch.arange(3, 12)
    found = judged(wired(), [Passage(torch.cat((words, words.flip(0), words)))])
    for head in found.values():
        for evidence in head.scores.values():
            if evidence.case is not None:
                assert {evidence.case.query, evidence.case.key} <= set(words.tolist()), (head.head, evidence.kind)
    induction = found["blocks.1.attention.1"]
    assert induction.kind == "induction" and induction.evidence is not None
    assert "measured on repeated random tokens" in str(evidence_text(induction))
    assert re.fullmatch(r"\d+ → \d+ \([+-]\d+, \d\.\d\d\)", case_text(induction.evidence, str))
    never_twice = judged(wired(), [Passage(torch.arange(3, 39))])["blocks.1.attention.1"]
    assert never_twice.kind == "induction" and case_text(never_twice.evidence, str) == ""


def test_induction_needs_the_previous_token_head() -> None:
    """Without the previous-token head in layer 0, the induction head in layer 1 has nothing to match."""
    model = wired()
    with torch.no_grad():
        model.stack.blocks[0].attention.output.weight.zero_()
    assert judged(model, texts())["blocks.1.attention.1"].kind != "induction"


@torch.no_grad()
def with_head(query: Tensor, key: Tensor, at: slice) -> Any:
    """Return the wired model with another head 1 in layer 0."""
    model = wired()
    set_head(model.stack.blocks[0].attention, slice(P, 2 * P), query, key, at)
    return model


def padded(matrix: Tensor) -> Tensor:
    """Pad to the width of a head."""
    whole = torch.zeros(P, matrix.shape[1])
    whole[: len(matrix)] = matrix
    return whole


PLACES, TOKENS = slice(V, V + P), slice(0, V)
RARE = rarest(torch.cat([each.tokens for each in texts()]).bincount(minlength=V).tolist())
ALL_ASK = padded(torch.ones(1, V))  # every token has the same query


@pytest.mark.parametrize(
    ("kind", "query", "key", "at"),
    [
        ("current-token", torch.eye(P), torch.eye(P), PLACES),
        ("positional (-3)", torch.eye(P).roll(-3, 0), torch.eye(P), PLACES),
        ("duplicate-token", padded(torch.eye(V)), padded(torch.eye(V)), TOKENS),
        ("punctuation", ALL_ASK, padded((torch.arange(V) == STOP).float()[None]), TOKENS),
        ("rare-word", ALL_ASK, padded(torch.tensor([float(token in RARE) for token in range(V)])[None]), TOKENS),
        ("first-token", padded(torch.ones(1, P)), padded((torch.arange(P) == 0).float()[None]), PLACES),
    ],
)
def test_other_hand_wired_heads(kind: str, query: Tensor, key: Tensor, at: slice) -> None:
    model = with_head(query, key, at)
    if kind == "duplicate-token":
        hide_itself(model)
    found = judged(model, texts())["blocks.0.attention.1"]
    assert found.kind == kind, {name: round(each.score, 2) for name, each in found.scores.items()}
    assert found.evidence is not None and found.evidence.score >= THRESHOLD


def test_one_favourite_token_is_not_a_rare_word_head() -> None:
    favourite = torch.zeros(1, V)
    favourite[0, max(RARE)] = 1
    found = judged(with_head(ALL_ASK, padded(favourite), TOKENS), texts())["blocks.0.attention.1"]
    assert found.kind != "rare-word" and found.scores["rare-word"].score < THRESHOLD


@torch.no_grad()
def hide_itself(model: Any) -> None:
    """Attend to other copies of a token, not to itself: the position lowers its own score."""
    attention = model.stack.blocks[0].attention
    attention.query.weight[P + V : 2 * P, PLACES] = -40 * torch.eye(P)[: P - V]
    attention.key.weight[P + V : 2 * P, PLACES] = torch.eye(P)[: P - V]


def test_a_head_with_a_fixed_offset_is_not_an_induction_head() -> None:
    """In a text that repeats after n tokens, an induction head also attends n - 1 positions back."""
    lengths = {len(each.tokens) // 2 for each in probes(range(V), P)}
    assert len(lengths) >= 3, "the probes repeat at different distances"
    back = max(lengths) - 1
    model = with_head(torch.eye(P).roll(-back, 0), torch.eye(P), PLACES)
    found = judged(model, texts())["blocks.0.attention.1"]
    assert found.kind != "induction" and found.scores["induction"].score < THRESHOLD


CONFIGS: dict[str, Any] = {
    "gpt": GPTConfig(vocab_size=V, context_length=P, d_model=32, n_heads=4, n_layers=2),
    "modern": GPTConfig(vocab_size=V, context_length=P, d_model=32, n_heads=4, n_layers=2, **MODERN, n_kv_heads=2),
    "bert": BERTConfig(vocab_size=V, context_length=P, d_model=32, n_heads=4, n_layers=2),
    "seq2seq": Seq2SeqConfig(vocab_size=V, context_length=P, d_model=32, n_heads=4, n_layers=2),
}


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("size", [1, 4])
def test_heads_of_an_untrained_model_are_unclear_or_broad(name: str, size: float) -> None:
    torch.manual_seed(0)
    model = build(CONFIGS[name])
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(size)
    passages = texts()
    if name == "seq2seq":
        passages = [Passage(each.tokens[:40], each.tokens) for each in passages]
    for head, found in judged(model, passages).items():
        assert found.kind in ("broad", "unclear"), (head, found.evidence)
        others = [each.score for kind, each in found.scores.items() if kind != "broad"]
        assert max(others) < THRESHOLD < BROAD_THRESHOLD


def test_a_short_text_gives_no_evidence() -> None:
    witness = HeadClassifier(wired())
    witness.read(look(wired(), Passage(random_text(8))))
    found = witness.verdicts()[0]
    assert found.kind == "unclear" and found.evidence is None
    assert str(evidence_text(found)) == "not enough text to decide"


def test_a_short_context_cannot_be_probed() -> None:
    assert probes(range(V), 11) == []
    few = probes(range(3), 12)  # fewer tokens than positions, so some occur more than twice
    assert len(few[0].tokens) == 12


def test_the_rarest_tenth_includes_ties() -> None:
    assert rarest([100, 50, 10, 10, 7]) == {
        2,
        3,
        4,
    }  # a tenth of 177 is 17.7, which 7 + 10 does not reach, so both tens are included
    assert rarest([100, 50, 10, 10, 7], besides=[4]) == {2, 3}
    assert rarest([0, 0]) == set()


def test_kinds_of_cross_attention() -> None:
    torch.manual_seed(0)
    model = build(CONFIGS["seq2seq"])
    found = judged(model, [Passage(each.tokens[:40], each.tokens) for each in texts()])
    assert set(found["decoder.0.cross.0"].scores) == {"positional", "first-token", "rare-word", "punctuation", "broad"}
    assert {"induction", "previous-token"} <= set(found["encoder.0.attention.0"].scores)


# -- trained heads ----------------------------------------------------------------------------------------------------


def repeated_batch(chance: torch.Generator, n_rows: int, length: int) -> Tensor:
    once = torch.rand(n_rows, V - 1, generator=chance).argsort(dim=1)[:, :length] + 1  # no repeated tokens
    return torch.cat((once, once), dim=1)


@pytest.mark.slow
def test_training_on_repeated_text_forms_an_induction_head(record_property: Any) -> None:
    """A trained head is recognized: the second half of each text can be predicted from the first half."""
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"d_model": 64, "n_heads": 2, "n_layers": 2, "d_ff": 64}
    layout: dict[str, Any] = {"norm": "rms", "positions": "rotary", "attention_bias": False}
    model: Any = build(GPTConfig(vocab_size=V, context_length=48, **sizes, **layout))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.mul_(3)  # small weights learn to distinguish tokens more slowly
    assert not any(each.kind == "induction" for each in judged(model, texts(48)).values())
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.98))
    chance = torch.Generator().manual_seed(1)
    for step in range(500):
        length = 8 + 2 * (step % 8)
        batch = repeated_batch(chance, 32, length)
        guesses = model(batch[:, :-1])[:, length - 1 :]
        loss = nn.functional.cross_entropy(guesses.flatten(0, 1), batch[:, length:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    found = judged(model, texts(48))
    record_property("kinds", {head: (each.kind, each.scores["induction"].score) for head, each in found.items()})
    named = [head for head, each in found.items() if each.kind == "induction"]
    assert named and all(head.startswith("blocks.1.") for head in named), "a single layer cannot do induction"
