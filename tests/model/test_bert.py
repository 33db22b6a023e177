"""BERT beside Hugging Face's ``BertForPreTraining``."""

from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.conftest import converted
from transformers import BertConfig, BertForPreTraining

from kotha.model.bert import BERT
from kotha.model.config import BERTConfig


@settings(max_examples=6, deadline=None, derandomize=True)
@given(
    n_layers=st.integers(1, 2),
    n_heads=st.sampled_from([1, 2, 4]),
    n_tokens=st.integers(2, 10),
    n_padded=st.integers(0, 5),
    seed=st.integers(0, 1000),
)
def test_bert_is_hugging_faces(
    shake: Any, assert_parity: Any, n_layers: int, n_heads: int, n_tokens: int, n_padded: int, seed: int
) -> None:
    torch.manual_seed(seed)
    theirs = BertForPreTraining(
        BertConfig(
            vocab_size=40,
            hidden_size=16,
            num_hidden_layers=n_layers,
            num_attention_heads=n_heads,
            intermediate_size=24,
            max_position_embeddings=10,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            pad_token_id=None,
        )
    )
    shake(theirs)
    ours = BERT(BERTConfig(d_model=16, n_heads=n_heads, d_ff=24, n_layers=n_layers, vocab_size=40, context_length=10))
    ours.load_state_dict(converted(ours, theirs.state_dict()))
    tokens, segments = torch.randint(40, (3, n_tokens)), torch.randint(2, (3, n_tokens))
    real = torch.ones(3, n_tokens, dtype=torch.bool)
    real[1, max(1, n_tokens - n_padded) :] = False
    mine = ours(tokens, segments, real)
    other = theirs(tokens, attention_mask=real.long(), token_type_ids=segments)
    # What stands at padding is nobody's business; everything else is the same.
    pairs = [
        (mine.token_logits * real[..., None], other.prediction_logits * real[..., None]),
        (mine.pair_logits, other.seq_relationship_logits),
    ]
    assert_parity(ours, theirs, pairs)
