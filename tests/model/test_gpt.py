"""GPT beside Hugging Face's: classic is GPT-2, modern is Qwen3."""

from functools import partial
from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel, Qwen3Config, Qwen3ForCausalLM

from kotha.model.config import GPTConfig
from kotha.model.gpt import GPT

FEW = settings(max_examples=6, deadline=None, derandomize=True)


def from_gpt2(theirs: dict[str, Tensor], n_layers: int) -> dict[str, Tensor]:
    """GPT-2's weights by our names; its matrices are stored transposed and Q, K, V in one."""
    ours = {
        "tokens.weight": theirs["transformer.wte.weight"],
        "positions.table.weight": theirs["transformer.wpe.weight"],
        "head.weight": theirs["lm_head.weight"],
        "stack.norm.weight": theirs["transformer.ln_f.weight"],
        "stack.norm.bias": theirs["transformer.ln_f.bias"],
    }
    parts = {
        "ln_1": "attention_norm",
        "ln_2": "feedforward_norm",
        "attn.c_proj": "attention.output",
        "mlp.c_fc": "feedforward.up",
        "mlp.c_proj": "feedforward.down",
    }
    for layer in range(n_layers):
        there, here = f"transformer.h.{layer}", f"stack.blocks.{layer}"
        for foreign, own in parts.items():
            ours[f"{here}.{own}.weight"] = upright(theirs[f"{there}.{foreign}.weight"])
            ours[f"{here}.{own}.bias"] = theirs[f"{there}.{foreign}.bias"]
        for kind in ("weight", "bias"):
            thirds = theirs[f"{there}.attn.c_attn.{kind}"].chunk(3, dim=-1)
            for own, third in zip(("query", "key", "value"), thirds, strict=True):
                ours[f"{here}.attention.{own}.{kind}"] = upright(third)
    return ours


def upright(tensor: Tensor) -> Tensor:
    """A matrix as nn.Linear keeps it: (in, out) -> (out, in)."""
    return tensor.mT if tensor.dim() == 2 else tensor


def from_qwen3(theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Qwen3's weights by our names."""
    renames = {
        "model.embed_tokens": "tokens",
        "lm_head": "head",
        "model.norm": "stack.norm",
        "model.layers": "stack.blocks",
        "self_attn.q_proj": "attention.query",
        "self_attn.k_proj": "attention.key",
        "self_attn.v_proj": "attention.value",
        "self_attn.o_proj": "attention.output",
        "self_attn.q_norm": "attention.query_norm",
        "self_attn.k_norm": "attention.key_norm",
        "mlp.gate_proj": "feedforward.gate",
        "mlp.up_proj": "feedforward.up",
        "mlp.down_proj": "feedforward.down",
        "input_layernorm": "attention_norm",
        "post_attention_layernorm": "feedforward_norm",
    }
    ours = {}
    for name, tensor in theirs.items():
        for foreign, own in renames.items():
            name = name.replace(foreign, own)
        ours[name] = tensor
    return ours


@FEW
@given(
    n_layers=st.integers(1, 3),
    n_heads=st.sampled_from([1, 2, 4]),
    d_head=st.sampled_from([4, 8]),
    n_tokens=st.integers(1, 12),
    seed=st.integers(0, 1000),
)
def test_classic_is_gpt2(
    shake: Any, assert_parity: Any, n_layers: int, n_heads: int, d_head: int, n_tokens: int, seed: int
) -> None:
    torch.manual_seed(seed)
    d_model = n_heads * d_head
    shape = {"n_layer": n_layers, "n_head": n_heads, "n_embd": d_model, "vocab_size": 50, "n_positions": 12}
    no_dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    theirs = GPT2LMHeadModel(GPT2Config(**shape, **no_dropout, bos_token_id=0, eos_token_id=0))
    shake(theirs)
    config = GPTConfig(
        d_model=d_model, n_heads=n_heads, n_layers=n_layers, vocab_size=50, context_length=12, activation="gelu-tanh"
    )
    ours = GPT(config)
    ours.load_state_dict(from_gpt2(theirs.state_dict(), n_layers))
    tokens = torch.randint(50, (2, n_tokens))
    convert = partial(from_gpt2, n_layers=n_layers)
    assert_parity(ours, theirs, convert, [(ours(tokens), theirs(tokens).logits)])


@FEW
@given(
    n_layers=st.integers(1, 3),
    heads=st.sampled_from([(2, 1), (2, 2), (4, 2)]),
    d_head=st.sampled_from([4, 16]),
    n_tokens=st.integers(1, 40),
    tied=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_modern_is_qwen3(
    shake: Any,
    assert_parity: Any,
    n_layers: int,
    heads: tuple[int, int],
    d_head: int,
    n_tokens: int,
    tied: bool,
    seed: int,
) -> None:
    torch.manual_seed(seed)
    n_heads, n_kv_heads = heads
    theirs = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=50,
            hidden_size=24,
            intermediate_size=20,
            num_hidden_layers=n_layers,
            num_attention_heads=n_heads,
            num_key_value_heads=n_kv_heads,
            head_dim=d_head,
            max_position_embeddings=40,
            tie_word_embeddings=tied,
            bos_token_id=0,
            eos_token_id=0,
            rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
        )
    )
    shake(theirs)
    config = GPTConfig(
        d_model=24,
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        d_head=d_head,
        d_ff=20,
        n_layers=n_layers,
        vocab_size=50,
        context_length=40,
        norm="rms",
        norm_eps=1e-6,
        positions="rotary",
        qk_norm=True,
        activation="swiglu",
        attention_bias=False,
        feedforward_bias=False,
        tied_head=tied,
    )
    ours = GPT(config)
    ours.load_state_dict(from_qwen3(theirs.state_dict()))
    tokens = torch.randint(50, (2, n_tokens))
    assert_parity(ours, theirs, from_qwen3, [(ours(tokens), theirs(tokens).logits)])
