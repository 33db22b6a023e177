"""Writing the GGUF file: what the model is, its vocabulary, its weights in the chosen kind.

``f32`` and ``f16`` store numbers as they are or rounded; quantization (``q8_0``, ``q4_0``) stores blocks of 32 along a
row with one scale. Norms, biases and positions are small and stay in float32. A row that does not divide into blocks
stays in float16 and is named in the result; embeddings and head are kept at eight bits in ``q4_0``, as llama.cpp does.
"""

from contextlib import closing
from pathlib import Path
from typing import Any

from torch import Tensor

from kotha.errors import KothaError
from kotha.export.gguf.layouts import architecture_of, tensors_of
from kotha.export.gguf.vocabulary import Vocabulary, vocabulary_of
from kotha.export.huggingface.tokenizer import chat_template
from kotha.files import whole_path
from kotha.model.config import GPTConfig
from kotha.model.gpt import GPT
from kotha.text.tokenizer.tokenizer import Tokenizer

KINDS: dict[str, str] = {
    "f32": "four bytes a weight, nothing rounded",
    "f16": "two bytes a weight",
    "q8_0": "a byte a weight, and a scale for 32 of them",
    "q4_0": "half a byte a weight, and a scale for 32; embeddings and head as q8_0",
}
_TABLES = ("token_embd.weight", "output.weight")
_FILE_TYPES = {"f32": "ALL_F32", "f16": "MOSTLY_F16", "q8_0": "MOSTLY_Q8_0", "q4_0": "MOSTLY_Q4_0"}


def write_file(model: GPT, tokenizer: Tokenizer, path: Path, kind: str) -> tuple[Vocabulary, list[str]]:
    """Write a model as one file, whole or not at all; the vocabulary as written, and the weights kept in float16."""
    library = _library()
    vocabulary = vocabulary_of(tokenizer, model.config.vocab_size)
    with whole_path(path) as partial:
        writer = library.GGUFWriter(partial, architecture_of(model.config))
        _describe(library, writer, model.config, path.stem, kind)
        _add_vocabulary(writer, vocabulary)
        _add_chat(writer, tokenizer)
        wider = _add_weights(library, writer, model, kind)
        with closing(writer):
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_tensors_to_file()
    return vocabulary, wider


def _library() -> Any:
    try:
        import gguf
    except ImportError as error:
        raise KothaError(
            "writing GGUF needs the gguf library: pip install 'kotha[gguf]', or pip install gguf"
        ) from error
    return gguf


def _describe(library: Any, writer: Any, config: GPTConfig, name: str, kind: str) -> None:
    writer.add_name(name)
    writer.add_file_type(library.LlamaFileType[_FILE_TYPES[kind]])
    writer.add_quantization_version(library.GGML_QUANT_VERSION)
    writer.add_vocab_size(config.vocab_size)
    writer.add_context_length(config.context_length)
    writer.add_embedding_length(config.d_model)
    writer.add_block_count(config.n_layers)
    writer.add_feed_forward_length(config.d_ff)
    writer.add_head_count(config.n_heads)
    writer.add_head_count_kv(config.n_kv_heads)
    if config.norm == "layer":
        writer.add_layer_norm_eps(config.norm_eps)
        return
    writer.add_layer_norm_rms_eps(config.norm_eps)
    writer.add_key_length(config.d_head)
    writer.add_value_length(config.d_head)
    writer.add_rope_dimension_count(config.d_head)
    writer.add_rope_freq_base(config.rotary_base)


def _add_vocabulary(writer: Any, vocabulary: Vocabulary) -> None:
    writer.add_tokenizer_model(vocabulary.model)
    writer.add_tokenizer_pre(vocabulary.pre)
    writer.add_token_list(vocabulary.pieces)
    writer.add_token_types([int(kind) for kind in vocabulary.kinds])
    if vocabulary.scores is not None:
        writer.add_token_scores(vocabulary.scores)
    if vocabulary.merges is not None:
        writer.add_token_merges(vocabulary.merges)
    if vocabulary.charsmap is not None:
        writer.add_precompiled_charsmap(vocabulary.charsmap)
    for role, token in vocabulary.special.items():
        writer.add_uint32(f"tokenizer.ggml.{role}_token_id", token)
    for flag, on in vocabulary.flags.items():
        writer.add_bool(f"tokenizer.ggml.{flag}", on)


def _add_chat(writer: Any, tokenizer: Tokenizer) -> None:
    """How turns are written: left out, llama.cpp would write them as ChatML, with marks that this vocabulary lacks."""
    texts = {role: tokenizer.pieces[token] for role, token in tokenizer.special.items()}
    if {"user", "assistant", "end"} <= texts.keys():
        writer.add_chat_template(chat_template(texts))


def _add_weights(library: Any, writer: Any, model: GPT, kind: str) -> list[str]:
    """Add every weight in its kind; the names of those that had to stay wider than asked."""
    wider = []
    for name, tensor in tensors_of(model).items():
        stored = _stored_kind(name, tensor, kind)
        _add_tensor(library, writer, name, tensor, stored)
        if kind.startswith("q") and stored == "f16":
            wider.append(name)
    return wider


def _stored_kind(name: str, tensor: Tensor, kind: str) -> str:
    if kind == "f32" or tensor.dim() < 2 or name == "position_embd.weight":
        return "f32"
    if kind.startswith("q") and tensor.shape[-1] % 32:
        return "f16"
    return "q8_0" if kind == "q4_0" and name in _TABLES else kind


def _add_tensor(library: Any, writer: Any, name: str, tensor: Tensor, kind: str) -> None:
    values = tensor.numpy()
    if kind == "f16":
        largest = float(tensor.abs().max())
        if largest > 65504:
            raise KothaError(f"{name} holds {largest:g}, more than float16 can write (65504); f32 can")
        writer.add_tensor(name, values.astype("float16"))
    elif kind == "f32":
        writer.add_tensor(name, values)
    else:
        stored = library.GGMLQuantizationType[kind.upper()]
        writer.add_tensor(name, library.quants.quantize(values, stored), raw_dtype=stored)
