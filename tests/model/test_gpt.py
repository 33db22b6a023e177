"""GPT beside Hugging Face's: classic is GPT-2, modern is Qwen3."""

from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.conftest import converted
from transformers import GPT2Config, GPT2LMHeadModel, Qwen3Config, Qwen3ForCausalLM

from kotha.model.config import GPTConfig
from kotha.model.gpt import GPT
from kotha.model.presets import MODERN

FEW = settings(max_examples=6, deadline=None, derandomize=True)


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
    ours.load_state_dict(converted(ours, theirs.state_dict()))
    tokens = torch.randint(50, (2, n_tokens))
    assert_parity(ours, theirs, [(ours(tokens), theirs(tokens).logits)])


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
        **MODERN,
        tied_head=tied,
    )
    ours = GPT(config)
    ours.load_state_dict(converted(ours, theirs.state_dict()))
    tokens = torch.randint(50, (2, n_tokens))
    assert_parity(ours, theirs, [(ours(tokens), theirs(tokens).logits)])
