"""Every architecture compared with transformers: the same outputs and gradients."""

from typing import Any

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.conftest import assert_parity, converted, shake
from torch import Tensor

from kotha.errors import UsageError
from kotha.export.huggingface.config import read_config
from kotha.model.family import build
from kotha.model.presets import preset

FEW = settings(max_examples=6, deadline=None, derandomize=True)
HEADS, LAYERS, SEED = st.sampled_from([1, 2, 4]), st.integers(1, 2), st.integers(0, 1000)
ENDS = {"bos_token_id": 0, "eos_token_id": 0}


def twin(theirs: Any, family: str) -> Any:
    """Kotha's model with the config and the (random) weights of the transformers model."""
    shake(theirs)
    _, config = read_config(theirs.config.to_dict())
    assert config.family == family
    ours = build(config)
    ours.load_state_dict(converted(ours, theirs.state_dict()))
    return ours


def padded(n_rows: int, n_tokens: int, n_padded: int) -> Tensor:
    """True at real positions, with padding in the second row: (B, T)."""
    real = torch.ones(n_rows, n_tokens, dtype=torch.bool)
    real[1, max(1, n_tokens - n_padded) :] = False
    return real


@FEW
@given(st.integers(1, 3), HEADS, st.sampled_from([4, 8]), st.integers(1, 12), SEED)
def test_classic_is_gpt2(n_layers: int, n_heads: int, d_head: int, n_tokens: int, seed: int) -> None:
    torch.manual_seed(seed)
    shape = {"n_layer": n_layers, "n_head": n_heads, "n_embd": n_heads * d_head, "vocab_size": 50, "n_positions": 12}
    no_dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    theirs = transformers.GPT2LMHeadModel(transformers.GPT2Config(**shape, **no_dropout, **ENDS))
    ours, tokens = twin(theirs, "gpt"), torch.randint(50, (2, n_tokens))
    assert_parity(ours, theirs, [(ours(tokens), theirs(tokens).logits)])


@FEW
@given(
    LAYERS | st.just(3),
    st.sampled_from([(2, 1), (2, 2), (4, 2)]),
    st.sampled_from([4, 16]),
    st.integers(1, 40),
    st.booleans(),
    SEED,
)
def test_modern_is_qwen3(
    n_layers: int, heads: tuple[int, int], d_head: int, n_tokens: int, tied: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    sizes = {"vocab_size": 50, "hidden_size": 24, "intermediate_size": 20, "max_position_embeddings": 40}
    sizes |= {"num_hidden_layers": n_layers, "head_dim": d_head}
    sizes |= {"num_attention_heads": heads[0], "num_key_value_heads": heads[1]}
    rope = {"rope_type": "default", "rope_theta": 10_000.0}
    config = transformers.Qwen3Config(**sizes, **ENDS, tie_word_embeddings=tied, rope_parameters=rope)
    theirs = transformers.Qwen3ForCausalLM(config)
    ours, tokens = twin(theirs, "gpt"), torch.randint(50, (2, n_tokens))
    assert_parity(ours, theirs, [(ours(tokens), theirs(tokens).logits)])


@FEW
@given(LAYERS, HEADS, st.integers(2, 10), st.integers(0, 5), SEED)
def test_bert_is_hugging_faces(n_layers: int, n_heads: int, n_tokens: int, n_padded: int, seed: int) -> None:
    torch.manual_seed(seed)
    sizes = {"vocab_size": 40, "hidden_size": 16, "intermediate_size": 24, "max_position_embeddings": 10}
    sizes |= {"num_hidden_layers": n_layers, "num_attention_heads": n_heads}
    no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    theirs = transformers.BertForPreTraining(transformers.BertConfig(**sizes, **no_dropout, pad_token_id=None))
    ours, real = twin(theirs, "bert"), padded(3, n_tokens, n_padded)
    tokens, segments = torch.randint(40, (3, n_tokens)), torch.randint(2, (3, n_tokens))
    mine = ours(tokens, segments, real)
    other = theirs(tokens, attention_mask=real.long(), token_type_ids=segments)
    # Outputs at padding may differ; all others are the same.
    words = mine.token_logits * real[..., None], other.prediction_logits * real[..., None]
    assert_parity(ours, theirs, [words, (mine.pair_logits, other.seq_relationship_logits)])


@FEW
@given(st.tuples(LAYERS, LAYERS), HEADS, st.tuples(st.integers(2, 10), st.integers(1, 10)), st.integers(0, 5), SEED)
def test_seq2seq_is_marian(
    layers: tuple[int, int], n_heads: int, lengths: tuple[int, int], n_padded: int, seed: int
) -> None:
    torch.manual_seed(seed)
    sizes: dict[str, Any] = {"vocab_size": 40, "d_model": 16, "max_position_embeddings": 10}
    for side, n_layers in zip(("encoder", "decoder"), layers, strict=True):
        sizes |= {f"{side}_layers": n_layers, f"{side}_attention_heads": n_heads, f"{side}_ffn_dim": 24}
    sizes |= {"pad_token_id": 39, "eos_token_id": 0, "forced_eos_token_id": 0, "decoder_start_token_id": 39}
    config = transformers.MarianConfig(**sizes, activation_function="relu", dropout=0.0, scale_embedding=True)
    theirs = transformers.MarianMTModel(config)
    theirs.final_logits_bias.normal_()
    ours, real = twin(theirs, "seq2seq"), padded(2, lengths[0], n_padded)
    ours.head.bias.requires_grad_(False)  # a buffer in transformers
    source, target = (torch.randint(39, (2, length)) for length in lengths)
    other = theirs(input_ids=source, attention_mask=real.long(), decoder_input_ids=target).logits
    convert = lambda tensors: {"head.bias": torch.zeros(40), **converted(ours, tensors)}
    assert_parity(ours, theirs, [(ours(source, target, real), other)], convert)


# -- images -----------------------------------------------------------------------------------------------------------


def their_vit(n_layers: int, n_heads: int, patch_size: int, n_side: int, n_channels: int) -> Any:
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_labels": 5, "num_channels": n_channels}
    sizes |= {"num_hidden_layers": n_layers, "num_attention_heads": n_heads}
    config = transformers.ViTConfig(**sizes, patch_size=patch_size, image_size=patch_size * n_side)
    return transformers.ViTForImageClassification(config)


@FEW
@given(LAYERS, HEADS, st.integers(1, 4), st.integers(1, 4), st.sampled_from([1, 3]), SEED)
def test_vit_is_hugging_faces(
    n_layers: int, n_heads: int, patch_size: int, n_side: int, n_channels: int, seed: int
) -> None:
    torch.manual_seed(seed)
    theirs = their_vit(n_layers, n_heads, patch_size, n_side, n_channels)
    ours = twin(theirs, "vit")
    images = torch.randn(2, n_channels, n_side * patch_size, n_side * patch_size)
    assert_parity(ours, theirs, [(ours(images), theirs(images).logits)])


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (5, 5), (3, 6)])
def test_positions_stretch_as_hugging_faces_do(rows: int, columns: int) -> None:
    torch.manual_seed(0)
    theirs = their_vit(1, 2, 2, 3, 1)
    ours, images = twin(theirs, "vit"), torch.randn(2, 1, 2 * rows, 2 * columns)
    assert_parity(ours, theirs, [(ours(images), theirs(images, interpolate_pos_encoding=True).logits)])


def test_images_may_lie_in_memory_as_they_like() -> None:
    model = build(preset("vit-digits")).eval()
    images = torch.randn(2, 28, 28, 1).permute(0, 3, 1, 2)
    assert torch.equal(model(images), model(images.contiguous()))


def test_images_that_do_not_fit_are_refused() -> None:
    model = build(preset("vit-digits"))
    with pytest.raises(UsageError, match="image size 30x28 is not divisible by patch_size=7; resize"):
        model(torch.zeros(1, 1, 30, 28))
    with pytest.raises(UsageError, match="the images have 3 channels, but the model expects n_channels=1"):
        model(torch.zeros(1, 3, 28, 28))
