"""``kotha.course.check``: right pieces pass, and each mistake is recognised as itself."""

import json
from pathlib import Path

import pytest
import torch
from tests.course.pieces.learners import MULTI_HEAD, RIGHT, WRONG, attention, feedforward, gpt, my_loss
from torch import nn

from kotha.course import check
from kotha.course.pieces import references, variants
from kotha.errors import UsageError
from kotha.i18n.catalogue import catalogue

F = nn.functional
TABLES = json.loads((Path(variants.__file__).parent / "mistakes.json").read_text(encoding="utf-8"))
CASES = [
    pytest.param(name, piece, id=f"{kind}: {name}") for kind, all_ in WRONG.items() for name, piece in all_.items()
]


@pytest.mark.parametrize("piece", RIGHT.values(), ids=RIGHT)
def test_a_right_piece_passes(piece) -> None:
    found = check(piece)
    assert found.passed and found.mistake is None and found.difference < 1e-2
    assert "qual to ours" in repr(found)


@pytest.mark.parametrize("name", variants.PIECES)
def test_our_piece_passes(name: str) -> None:
    assert check(variants.PIECES[name].reference).difference == 0


@pytest.mark.parametrize(("mistake", "piece"), CASES)
def test_a_mistake_is_recognised_as_itself(mistake: str, piece) -> None:
    found = check(piece)
    assert not found.passed
    assert found.mistake == mistake.strip(), found


def test_every_mistake_is_made_by_a_learner() -> None:
    for kind, piece in variants.PIECES.items():
        known = {name for table in piece.tables for name in TABLES[table]} - variants.ACCEPTED
        assert known <= WRONG[kind].keys(), kind
    assert sum(map(len, TABLES.values())) > 100


@pytest.mark.parametrize("name", variants.PIECES)
def test_no_two_mistakes_look_the_same(name: str) -> None:
    """Otherwise the order of the table would decide what a learner reads."""
    own = {name for table in variants.PIECES[name].tables for name in TABLES[table]}
    found = [(each.name, check(each.build)) for each in variants.variants(name) if each.name in own]
    wrong = [(name, result.mistake) for name, result in found if not result.passed and result.mistake != name]
    assert wrong == []


@pytest.mark.parametrize("text", [message for table in TABLES.values() for message, *_ in table.values()])
def test_every_mistake_has_its_bangla(text: str) -> None:
    assert text in catalogue("bn")


# -- ours is the field's -----------------------------------------------------------------------------------------------


def test_our_attention_is_torch_s() -> None:
    head, x = references.AttentionPiece(8, 4), torch.randn(2, 5, 8)
    wanted = F.scaled_dot_product_attention(head.query(x), head.key(x), head.value(x), is_causal=True)
    torch.testing.assert_close(head(x), wanted)


def test_our_multi_head_attention_is_torch_s() -> None:
    ours, x = references.MultiHeadPiece(12, 3), torch.randn(2, 5, 12)
    theirs = nn.MultiheadAttention(12, 3, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]))
        theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.key.bias, ours.value.bias]))
        theirs.out_proj.load_state_dict(ours.output.state_dict())
    hidden = torch.ones(5, 5).triu(1).bool()
    torch.testing.assert_close(ours(x), theirs(x, x, x, attn_mask=hidden, need_weights=False)[0])


def test_our_block_and_feed_forward_part_are_torch_s() -> None:
    ours, x = references.BlockPiece(12, 3, 20), torch.randn(2, 5, 12)
    theirs = nn.TransformerEncoderLayer(12, 3, 20, 0.0, F.gelu, batch_first=True, norm_first=True)
    heads, parts = ours.attention, theirs.self_attn
    with torch.no_grad():
        parts.in_proj_weight.copy_(torch.cat([heads.query.weight, heads.key.weight, heads.value.weight]))
        parts.in_proj_bias.copy_(torch.cat([heads.query.bias, heads.key.bias, heads.value.bias]))
        parts.out_proj.load_state_dict(heads.output.state_dict())
        theirs.linear1.load_state_dict(ours.feedforward.up.state_dict())
        theirs.linear2.load_state_dict(ours.feedforward.down.state_dict())
    torch.testing.assert_close(ours(x), theirs(x, src_mask=torch.ones(5, 5).triu(1).bool()))


def test_our_loss_is_torch_s() -> None:
    logits, tokens = torch.randn(2, 5, 7), torch.randint(7, (2, 5))
    wanted = F.cross_entropy(logits[:, :-1].transpose(1, 2), tokens[:, 1:])
    torch.testing.assert_close(references.loss(logits, tokens), wanted)


def test_our_gpt_is_hugging_face_s() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        vocab_size=11, n_positions=16, n_embd=12, n_head=3, n_layer=2, n_inner=20, activation_function="gelu"
    )
    theirs, ours = transformers.GPT2LMHeadModel(config).eval(), references.GPTPiece(11, 16, 12, 3, 20, 2)
    own = theirs.transformer
    with torch.no_grad():
        ours.tokens.weight.copy_(own.wte.weight)
        ours.head.weight.copy_(own.wte.weight)
        ours.positions.weight.copy_(own.wpe.weight)
        ours.norm.load_state_dict(own.ln_f.state_dict())
        for mine, its in zip(ours.blocks, own.h, strict=True):
            mine.attention_norm.load_state_dict(its.ln_1.state_dict())
            mine.feedforward_norm.load_state_dict(its.ln_2.state_dict())
            for name, weight in zip(("query", "key", "value"), its.attn.c_attn.weight.T.chunk(3), strict=True):
                getattr(mine.attention, name).weight.copy_(weight)
                getattr(mine.attention, name).bias.zero_()
            for target, source in (
                (mine.attention.output, its.attn.c_proj),
                (mine.feedforward.up, its.mlp.c_fc),
                (mine.feedforward.down, its.mlp.c_proj),
            ):
                target.weight.copy_(source.weight.T)
                target.bias.copy_(source.bias)
    tokens = torch.randint(11, (2, 7))
    torch.testing.assert_close(ours(tokens), theirs(tokens).logits, rtol=1e-4, atol=1e-5)


def test_our_sampling_is_hugging_face_s() -> None:
    warpers = pytest.importorskip("transformers").generation.logits_process
    logits = torch.randn(4, 30)
    wanted = warpers.TemperatureLogitsWarper(0.8)(None, logits)
    wanted = warpers.TopPLogitsWarper(0.7)(None, warpers.TopKLogitsWarper(12)(None, wanted)).softmax(-1)
    torch.testing.assert_close(references.sampling(logits, 0.8, 12, 0.7), wanted)


# -- what cannot be compared -------------------------------------------------------------------------------------------


class BrokenAttention(nn.Module):
    def __init__(self, d_model, d_head):
        super().__init__()
        self.query, self.key = nn.Linear(d_model, d_head), nn.Linear(d_model, d_head)

    def forward(self, x):
        return self.query(x) @ self.key(x)


class ForgottenAttention(nn.Module):
    def __init__(self, d_model, d_head):
        self.query = nn.Linear(d_model, d_head)


class WrongSizesMLP(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.up, self.down = nn.Linear(d_model, 4 * d_model), nn.Linear(4 * d_model, d_model)


class RenamedMLP(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.first, self.second = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.second(F.gelu(self.first(x)))


def no_return_loss(logits, tokens):
    my_loss(logits, tokens)


def pair_loss(logits, tokens):
    return my_loss(logits, tokens), 0


FAILING = [
    (
        BrokenAttention,
        "RuntimeError: ",
        "return self.query(x) @ self.key(x)",
        "BrokenAttention(d_model=8, d_head=4)(x: (2, 5, 8))",
    ),
    (ForgottenAttention, "AttributeError: cannot assign module before Module.__init__() call, in line "),
    (attention(forward=lambda m, x: None), "Nothing is returned"),
    (WrongSizesMLP, "up.weight has the shape (24, 6), expected (20, 6)"),
    (RenamedMLP, "Unknown layers: first, second. Use our names: up, down."),
    (feedforward(lambda m, x: m.up(x).square(), down=False), "Missing layers: down. We have: up, down."),
    (feedforward(lambda m, x: F.dropout(m.down(m.up(x)))), "The same input gives different results"),
    (attention(forward=lambda m, x: m.value(x)[:, :1]), "has the shape (2, 1, 4), expected (2, 5, 4)"),
    (attention(forward=lambda m, x: m.value(x)), "The shape is right, but not the numbers", "at [0, 1, 0]"),
    (no_return_loss, "Nothing is returned"),
    (pair_loss, "The result is of type tuple", "pair_loss(logits: (2, 5, 7), tokens: (2, 5))"),
    (type("NotAModuleBlock", (), {"__init__": lambda self, *sizes: None}), "class NotAModuleBlock(nn.Module)"),
]


@pytest.mark.parametrize(("piece", "said"), [(piece, said) for piece, *said in FAILING])
def test_what_cannot_be_compared_says_what_to_do(piece, said: list[str]) -> None:
    found = check(piece)
    assert not found.passed and found.mistake is None
    assert [words for words in said if words not in repr(found)] == [], found


def test_an_unknown_name_is_rejected() -> None:
    with pytest.raises(UsageError, match=r"Foo is not one of the pieces; .*multihead, attention"):
        check(type("Foo", (), {}))


def test_a_check_leaves_the_random_numbers_and_the_model_alone() -> None:
    made = gpt()(11, 16, 12, 3, 20, 2)
    before = [each.clone() for each in made.parameters()]
    state = torch.random.get_rng_state()
    assert check(made).passed
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(torch.equal(one, other) for one, other in zip(before, made.parameters(), strict=True))


def test_the_language_is_the_learner_s(monkeypatch: pytest.MonkeyPatch) -> None:
    bangla = "MultiHead: শেষের প্রজেকশন নেই। জোড়া লাগানো হেডে self.output দিন, তবেই এক হেডের ফল অন্যটির সঙ্গে মেশে।"
    assert repr(check(MULTI_HEAD["no-output"], language="bn")) == bangla
    assert repr(check(my_loss, "bn")) == "my_loss: আমাদেরটির সমান। কোনো সংখ্যার পার্থক্য 1e-06-এর বেশি নয়।"
    monkeypatch.setenv("KOTHA_LANGUAGE", "bn")
    assert repr(check(MULTI_HEAD["no-output"])) == bangla
    assert repr(check(no_return_loss)) == "no_return_loss: কিছু ফেরত আসেনি। ফাংশনের শেষে return দিন।"
    assert repr(check(MULTI_HEAD["no-output"], language="en")).startswith("MultiHead: The output projection is missing")
