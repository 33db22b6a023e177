"""The one table of foreign names: what each of our weights is called elsewhere, and how it lies there.

Names are those that files on disk have. ``{n}`` is a layer's number, ``*`` is ``weight`` and ``bias``; a row without a
remark keeps a weight as it is. What is not here: sizes and settings (see ``layouts.py``), and how a table is read (see
``weight_map.py``).
"""

from dataclasses import replace

from kotha.export.weight_map import ONE_ROW, ONE_TOKEN, PATCHES, QUERY_KEY_VALUE, TURNED, Renamed, WeightMap

_BLOCK = "stack.blocks.{n}."
_QUERY_KEY_VALUE = (_BLOCK + "attention.query.*", _BLOCK + "attention.key.*", _BLOCK + "attention.value.*")


def _attention(theirs: str, *names: str) -> tuple[Renamed, ...]:
    """Their names for query, key, value and, where it is called like them, output."""
    pairs = zip(("query", "key", "value", "output"), names, strict=False)
    return tuple(Renamed(f"{_BLOCK}attention.{mine}.*", f"{theirs}.{name}.*") for mine, name in pairs)


GPT2 = WeightMap(
    rows=(
        Renamed("tokens.weight", "transformer.wte.weight"),
        Renamed("positions.table.weight", "transformer.wpe.weight"),
        Renamed(_BLOCK + "attention_norm.*", "transformer.h.{n}.ln_1.*"),
        Renamed(_QUERY_KEY_VALUE, "transformer.h.{n}.attn.c_attn.*", QUERY_KEY_VALUE),
        Renamed(_BLOCK + "attention.output.*", "transformer.h.{n}.attn.c_proj.*", TURNED),
        Renamed(_BLOCK + "feedforward_norm.*", "transformer.h.{n}.ln_2.*"),
        Renamed(_BLOCK + "feedforward.up.*", "transformer.h.{n}.mlp.c_fc.*", TURNED),
        Renamed(_BLOCK + "feedforward.down.*", "transformer.h.{n}.mlp.c_proj.*", TURNED),
        Renamed("stack.norm.*", "transformer.ln_f.*"),
        Renamed("head.weight", "lm_head.weight"),
    ),
    computed=("transformer.h.{n}.attn.bias", "transformer.h.{n}.attn.masked_bias"),
    body="transformer.",
)

_LLAMA_ROWS = (
    Renamed("tokens.weight", "model.embed_tokens.weight"),
    Renamed(_BLOCK + "attention_norm.weight", "model.layers.{n}.input_layernorm.weight"),
    *_attention("model.layers.{n}.self_attn", "q_proj", "k_proj", "v_proj", "o_proj"),
    Renamed(_BLOCK + "feedforward_norm.weight", "model.layers.{n}.post_attention_layernorm.weight"),
    Renamed(_BLOCK + "feedforward.gate.*", "model.layers.{n}.mlp.gate_proj.*"),
    Renamed(_BLOCK + "feedforward.up.*", "model.layers.{n}.mlp.up_proj.*"),
    Renamed(_BLOCK + "feedforward.down.*", "model.layers.{n}.mlp.down_proj.*"),
    Renamed("stack.norm.weight", "model.norm.weight"),
    Renamed("head.weight", "lm_head.weight"),
)
LLAMA = WeightMap(rows=_LLAMA_ROWS, computed=("model.layers.{n}.self_attn.rotary_emb.inv_freq",), body="model.")
QWEN3 = WeightMap(
    rows=(
        *_LLAMA_ROWS,
        Renamed(_BLOCK + "attention.query_norm.weight", "model.layers.{n}.self_attn.q_norm.weight"),
        Renamed(_BLOCK + "attention.key_norm.weight", "model.layers.{n}.self_attn.k_norm.weight"),
    ),
    body="model.",
)

BERT = WeightMap(
    rows=(
        Renamed("tokens.weight", "bert.embeddings.word_embeddings.weight"),
        Renamed("segments.weight", "bert.embeddings.token_type_embeddings.weight"),
        Renamed("positions.table.weight", "bert.embeddings.position_embeddings.weight"),
        Renamed("embedding_norm.*", "bert.embeddings.LayerNorm.*"),
        *_attention("bert.encoder.layer.{n}.attention.self", "query", "key", "value"),
        Renamed(_BLOCK + "attention.output.*", "bert.encoder.layer.{n}.attention.output.dense.*"),
        Renamed(_BLOCK + "attention_norm.*", "bert.encoder.layer.{n}.attention.output.LayerNorm.*"),
        Renamed(_BLOCK + "feedforward.up.*", "bert.encoder.layer.{n}.intermediate.dense.*"),
        Renamed(_BLOCK + "feedforward.down.*", "bert.encoder.layer.{n}.output.dense.*"),
        Renamed(_BLOCK + "feedforward_norm.*", "bert.encoder.layer.{n}.output.LayerNorm.*"),
        Renamed("pooler.*", "bert.pooler.dense.*"),
        Renamed("pair_head.*", "cls.seq_relationship.*"),
        Renamed("transform.*", "cls.predictions.transform.dense.*"),
        Renamed("transform_norm.*", "cls.predictions.transform.LayerNorm.*"),
        Renamed("head.weight", "cls.predictions.decoder.weight"),
        Renamed("head.bias", "cls.predictions.bias"),
    ),
    spellings=((".LayerNorm.gamma", ".LayerNorm.weight"), (".LayerNorm.beta", ".LayerNorm.bias")),
    copies=(("cls.predictions.decoder.bias", "cls.predictions.bias"),),
    computed=("bert.embeddings.position_ids",),
)


def classifying(of_words: WeightMap, head: str) -> WeightMap:
    """The same body with a head for classes, which stands beside it: its own heads for words are not there."""
    rows = [
        replace(row, ours=tuple(f"body.{name}" for name in row.our_names))
        for row in of_words.rows
        if not row.theirs.startswith(("lm_head.", "cls."))
    ]
    return replace(of_words, rows=(*rows, Renamed("head.*", head)), copies=())


VIT = WeightMap(
    rows=(
        Renamed("patches.projection.weight", "vit.embeddings.patch_embeddings.projection.weight", PATCHES),
        Renamed("patches.projection.bias", "vit.embeddings.patch_embeddings.projection.bias"),
        Renamed("class_token", "vit.embeddings.cls_token", ONE_TOKEN),
        Renamed("positions.table.weight", "vit.embeddings.position_embeddings", ONE_ROW),
        Renamed(_BLOCK + "attention_norm.*", "vit.encoder.layer.{n}.layernorm_before.*"),
        *_attention("vit.encoder.layer.{n}.attention.attention", "query", "key", "value"),
        Renamed(_BLOCK + "attention.output.*", "vit.encoder.layer.{n}.attention.output.dense.*"),
        Renamed(_BLOCK + "feedforward_norm.*", "vit.encoder.layer.{n}.layernorm_after.*"),
        Renamed(_BLOCK + "feedforward.up.*", "vit.encoder.layer.{n}.intermediate.dense.*"),
        Renamed(_BLOCK + "feedforward.down.*", "vit.encoder.layer.{n}.output.dense.*"),
        Renamed("stack.norm.*", "vit.layernorm.*"),
        Renamed("head.*", "classifier.*"),
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


def _marian(side: str, attentions: dict[str, str]) -> tuple[Renamed, ...]:
    """Encoder or decoder: the attentions of a layer, each with its norm, and the feed-forward."""
    names = {"feedforward.up": "fc1", "feedforward.down": "fc2", "feedforward_norm": "final_layer_norm"}
    for mine, name in attentions.items():
        parts = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
        names |= {f"{mine}.{part}": f"{name}.{other}" for part, other in parts.items()}
        names[f"{mine}_norm"] = f"{name}_layer_norm"
    pairs = ((f"{side}.blocks.{{n}}.{mine}.*", f"model.{side}.layers.{{n}}.{name}.*") for mine, name in names.items())
    return tuple(Renamed(*each) for each in pairs)


MARIAN = WeightMap(
    rows=(
        Renamed("tokens.weight", "model.shared.weight"),
        *_marian("encoder", {"attention": "self_attn"}),
        *_marian("decoder", {"attention": "self_attn", "cross": "encoder_attn"}),
        Renamed("head.weight", "lm_head.weight"),
        Renamed("head.bias", "final_logits_bias", ONE_ROW),
    ),
    copies=(
        ("model.encoder.embed_tokens.weight", "model.shared.weight"),
        ("model.decoder.embed_tokens.weight", "model.shared.weight"),
    ),
    computed=("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"),
)
