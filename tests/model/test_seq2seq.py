"""Stacks of blocks compared with torch's ``nn.Transformer``."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.conftest import assert_parity, shake
from torch import Tensor, nn

from kotha.model.config import NormOrder, Seq2SeqConfig
from kotha.model.masks import padding_mask
from kotha.model.seq2seq import Seq2Seq

TORCH = {
    "layers": "blocks",
    "self_attn": "attention",
    "multihead_attn": "cross",
    "out_proj": "output",
    "linear1": "feedforward.up",
    "linear2": "feedforward.down",
    "norm1": "attention_norm",
}


def from_torch(theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    """``nn.Transformer``'s weights by Kotha's names; Q, K and V are stored as one matrix, and norms are numbered."""
    ours = {}
    for name, tensor in theirs.items():
        for foreign, own in TORCH.items():
            name = name.replace(foreign, own)
        name = name.replace("norm2", "cross_norm" if name.startswith("decoder") else "feedforward_norm")
        name = name.replace("norm3", "feedforward_norm")
        if "in_proj_" not in name:
            ours[name] = tensor
        else:
            for own, third in zip(("query", "key", "value"), tensor.chunk(3), strict=True):
                ours[name.replace("in_proj_", f"{own}.")] = third
    return ours


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")  # torch's warning that it cannot use a fast path
@settings(max_examples=6, deadline=None, derandomize=True)
@given(
    order=st.sampled_from(["pre", "post"]),
    activation=st.sampled_from(["relu", "gelu"]),
    final_norm=st.booleans(),
    n_heads=st.sampled_from([1, 2, 4]),
    n_padded=st.integers(0, 4),
    seed=st.integers(0, 1000),
)
def test_stacks_are_torchs_own(
    order: NormOrder, activation: Any, final_norm: bool, n_heads: int, n_padded: int, seed: int
) -> None:
    torch.manual_seed(seed)
    theirs = nn.Transformer(16, n_heads, 2, 1, 24, 0.0, activation, batch_first=True, norm_first=order == "pre")
    if not final_norm:
        theirs.encoder.norm = theirs.decoder.norm = None
    shake(theirs)
    sizes: Any = {"d_model": 16, "d_ff": 24, "n_layers": 2, "n_decoder_layers": 1, "vocab_size": 2, "context_length": 8}
    kind: Any = {"activation": activation, "norm_order": order, "final_norm": final_norm}
    ours = Seq2Seq(Seq2SeqConfig(n_heads=n_heads, **sizes, **kind))
    ours.load_state_dict(from_torch(theirs.state_dict()), strict=False)
    source, target = torch.randn(2, 6, 16), torch.randn(2, 8, 16)
    real = torch.ones(2, 6, dtype=torch.bool)
    real[1, 6 - n_padded :] = False
    other = theirs(
        source,
        target,
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(8),
        tgt_is_causal=True,
        src_key_padding_mask=~real,
        memory_key_padding_mask=~real,
    )
    mask = padding_mask(real)
    mine = ours.decoder(target, "causal", memories=ours.encoder(source, mask), memory_mask=mask)
    stacks = nn.ModuleDict({"encoder": ours.encoder, "decoder": ours.decoder})
    assert_parity(stacks, theirs, [(mine, other)], from_torch)
