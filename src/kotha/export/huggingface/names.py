"""The one table of foreign names: what each of our weights is called elsewhere, and how it lies there.

Names are those that files on disk have. ``{n}`` is a layer's number, ``*`` is ``weight`` and ``bias``; a row without a
remark keeps a weight as it is. What is not here: sizes and settings (see ``layouts.py``), and how a table is read (see
``naming.py``).
"""

from kotha.export.huggingface.renaming import ONE_ROW, ONE_TOKEN, PATCHES, QUERY_KEY_VALUE, TURNED, Names, Row

_BLOCK = "stack.blocks.{n}."
_QUERY_KEY_VALUE = (_BLOCK + "attention.query.*", _BLOCK + "attention.key.*", _BLOCK + "attention.value.*")

GPT2 = Names(
    rows=(
        Row("tokens.weight", "transformer.wte.weight"),
        Row("positions.table.weight", "transformer.wpe.weight"),
        Row(_BLOCK + "attention_norm.*", "transformer.h.{n}.ln_1.*"),
        Row(_QUERY_KEY_VALUE, "transformer.h.{n}.attn.c_attn.*", QUERY_KEY_VALUE),
        Row(_BLOCK + "attention.output.*", "transformer.h.{n}.attn.c_proj.*", TURNED),
        Row(_BLOCK + "feedforward_norm.*", "transformer.h.{n}.ln_2.*"),
        Row(_BLOCK + "feedforward.up.*", "transformer.h.{n}.mlp.c_fc.*", TURNED),
        Row(_BLOCK + "feedforward.down.*", "transformer.h.{n}.mlp.c_proj.*", TURNED),
        Row("stack.norm.*", "transformer.ln_f.*"),
        Row("head.weight", "lm_head.weight"),
    ),
    computed=("transformer.h.{n}.attn.bias", "transformer.h.{n}.attn.masked_bias"),
    body="transformer.",
)

_LLAMA_ROWS = (
    Row("tokens.weight", "model.embed_tokens.weight"),
    Row(_BLOCK + "attention_norm.weight", "model.layers.{n}.input_layernorm.weight"),
    Row(_BLOCK + "attention.query.*", "model.layers.{n}.self_attn.q_proj.*"),
    Row(_BLOCK + "attention.key.*", "model.layers.{n}.self_attn.k_proj.*"),
    Row(_BLOCK + "attention.value.*", "model.layers.{n}.self_attn.v_proj.*"),
    Row(_BLOCK + "attention.output.*", "model.layers.{n}.self_attn.o_proj.*"),
    Row(_BLOCK + "feedforward_norm.weight", "model.layers.{n}.post_attention_layernorm.weight"),
    Row(_BLOCK + "feedforward.gate.*", "model.layers.{n}.mlp.gate_proj.*"),
    Row(_BLOCK + "feedforward.up.*", "model.layers.{n}.mlp.up_proj.*"),
    Row(_BLOCK + "feedforward.down.*", "model.layers.{n}.mlp.down_proj.*"),
    Row("stack.norm.weight", "model.norm.weight"),
    Row("head.weight", "lm_head.weight"),
)
LLAMA = Names(rows=_LLAMA_ROWS, computed=("model.layers.{n}.self_attn.rotary_emb.inv_freq",), body="model.")
QWEN3 = Names(
    rows=(
        *_LLAMA_ROWS,
        Row(_BLOCK + "attention.query_norm.weight", "model.layers.{n}.self_attn.q_norm.weight"),
        Row(_BLOCK + "attention.key_norm.weight", "model.layers.{n}.self_attn.k_norm.weight"),
    ),
    body="model.",
)

BERT = Names(
    rows=(
        Row("tokens.weight", "bert.embeddings.word_embeddings.weight"),
        Row("segments.weight", "bert.embeddings.token_type_embeddings.weight"),
        Row("positions.table.weight", "bert.embeddings.position_embeddings.weight"),
        Row("embedding_norm.*", "bert.embeddings.LayerNorm.*"),
        Row(_BLOCK + "attention.query.*", "bert.encoder.layer.{n}.attention.self.query.*"),
        Row(_BLOCK + "attention.key.*", "bert.encoder.layer.{n}.attention.self.key.*"),
        Row(_BLOCK + "attention.value.*", "bert.encoder.layer.{n}.attention.self.value.*"),
        Row(_BLOCK + "attention.output.*", "bert.encoder.layer.{n}.attention.output.dense.*"),
        Row(_BLOCK + "attention_norm.*", "bert.encoder.layer.{n}.attention.output.LayerNorm.*"),
        Row(_BLOCK + "feedforward.up.*", "bert.encoder.layer.{n}.intermediate.dense.*"),
        Row(_BLOCK + "feedforward.down.*", "bert.encoder.layer.{n}.output.dense.*"),
        Row(_BLOCK + "feedforward_norm.*", "bert.encoder.layer.{n}.output.LayerNorm.*"),
        Row("pooler.*", "bert.pooler.dense.*"),
        Row("pair_head.*", "cls.seq_relationship.*"),
        Row("transform.*", "cls.predictions.transform.dense.*"),
        Row("transform_norm.*", "cls.predictions.transform.LayerNorm.*"),
        Row("head.weight", "cls.predictions.decoder.weight"),
        Row("head.bias", "cls.predictions.bias"),
    ),
    spellings=((".LayerNorm.gamma", ".LayerNorm.weight"), (".LayerNorm.beta", ".LayerNorm.bias")),
    copies=(("cls.predictions.decoder.bias", "cls.predictions.bias"),),
    computed=("bert.embeddings.position_ids",),
)

VIT = Names(
    rows=(
        Row("patches.projection.weight", "vit.embeddings.patch_embeddings.projection.weight", PATCHES),
        Row("patches.projection.bias", "vit.embeddings.patch_embeddings.projection.bias"),
        Row("class_token", "vit.embeddings.cls_token", ONE_TOKEN),
        Row("positions.table.weight", "vit.embeddings.position_embeddings", ONE_ROW),
        Row(_BLOCK + "attention_norm.*", "vit.encoder.layer.{n}.layernorm_before.*"),
        Row(_BLOCK + "attention.query.*", "vit.encoder.layer.{n}.attention.attention.query.*"),
        Row(_BLOCK + "attention.key.*", "vit.encoder.layer.{n}.attention.attention.key.*"),
        Row(_BLOCK + "attention.value.*", "vit.encoder.layer.{n}.attention.attention.value.*"),
        Row(_BLOCK + "attention.output.*", "vit.encoder.layer.{n}.attention.output.dense.*"),
        Row(_BLOCK + "feedforward_norm.*", "vit.encoder.layer.{n}.layernorm_after.*"),
        Row(_BLOCK + "feedforward.up.*", "vit.encoder.layer.{n}.intermediate.dense.*"),
        Row(_BLOCK + "feedforward.down.*", "vit.encoder.layer.{n}.output.dense.*"),
        Row("stack.norm.*", "vit.layernorm.*"),
        Row("head.*", "classifier.*"),
    ),
    # As transformers calls them in memory since version 5; in files they have the names above.
    spellings=(
        ("vit.layers.", "vit.encoder.layer."),
        (".attention.q_proj.", ".attention.attention.query."),
        (".attention.k_proj.", ".attention.attention.key."),
        (".attention.v_proj.", ".attention.attention.value."),
        (".attention.o_proj.", ".attention.output.dense."),
        (".mlp.fc1.", ".intermediate.dense."),
        (".mlp.fc2.", ".output.dense."),
    ),
)


def _marian_side(ours: str, theirs: str) -> tuple[Row, ...]:
    """The rows of encoder or decoder, without the decoder's look at the encoder."""
    return (
        *_marian_attention(f"{ours}.blocks.{{n}}.attention", f"{theirs}.layers.{{n}}.self_attn"),
        Row(f"{ours}.blocks.{{n}}.attention_norm.*", f"{theirs}.layers.{{n}}.self_attn_layer_norm.*"),
        Row(f"{ours}.blocks.{{n}}.feedforward.up.*", f"{theirs}.layers.{{n}}.fc1.*"),
        Row(f"{ours}.blocks.{{n}}.feedforward.down.*", f"{theirs}.layers.{{n}}.fc2.*"),
        Row(f"{ours}.blocks.{{n}}.feedforward_norm.*", f"{theirs}.layers.{{n}}.final_layer_norm.*"),
    )


def _marian_attention(ours: str, theirs: str) -> tuple[Row, ...]:
    pairs = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
    return tuple(Row(f"{ours}.{mine}.*", f"{theirs}.{other}.*") for mine, other in pairs.items())


MARIAN = Names(
    rows=(
        Row("tokens.weight", "model.shared.weight"),
        *_marian_side("encoder", "model.encoder"),
        *_marian_side("decoder", "model.decoder"),
        *_marian_attention("decoder.blocks.{n}.cross", "model.decoder.layers.{n}.encoder_attn"),
        Row("decoder.blocks.{n}.cross_norm.*", "model.decoder.layers.{n}.encoder_attn_layer_norm.*"),
        Row("head.weight", "lm_head.weight"),
        Row("head.bias", "final_logits_bias", ONE_ROW),
    ),
    copies=(
        ("model.encoder.embed_tokens.weight", "model.shared.weight"),
        ("model.decoder.embed_tokens.weight", "model.shared.weight"),
    ),
    computed=("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"),
)
