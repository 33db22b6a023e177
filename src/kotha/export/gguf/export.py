"""Export to GGUF, the file format used by llama.cpp and programs built on it.

``layouts.toml`` maps models to llama.cpp's architectures: classic GPTs (LayerNorm, learned positions, GELU) to
``gpt2``, modern ones to ``qwen3`` if they have QK-norm and to ``llama`` otherwise. ``vocabulary.py`` converts the
tokenizer. This module writes the file with metadata, vocabulary and weights, runs it in llama.cpp (``llamacpp.py``),
and compares the output with that of the model.

``f32`` stores numbers unchanged, and ``f16`` rounds them; quantization (``q8_0``, ``q4_0``) stores blocks of 32 numbers
along a row with one scale. Norms, biases and positions are small and stay in float32. A matrix whose row length is not
a multiple of 32 stays in float16 and is listed in the report; with ``q4_0``, embeddings and head are stored as
``q8_0``, as in llama.cpp.

The report mentions three known differences. llama.cpp stores keys and values in float16, so logits differ slightly even
with f32 weights, and the most likely tokens are compared instead. Its ``gpt2`` architecture uses the tanh approximation
of GELU, even if the model was trained with the exact formula. With a BPE tokenizer it does not normalize text, so
tokens are compared on normalized lines, and the report counts the lines that differ without normalization.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from kotha.errors import KothaError
from kotha.export.card import About
from kotha.export.exporter import Exporter, ExportJob
from kotha.export.gguf import llamacpp
from kotha.export.gguf.vocabulary import Vocabulary, vocabulary_of
from kotha.export.libraries import require_libraries
from kotha.export.parity import ParityReport, logit_rows, our_side, prompt_reader
from kotha.export.weight_names import Layout, fitting, fitting_layout, foreign_weights, load_layouts
from kotha.i18n.message import Message
from kotha.model.config import ModelConfig
from kotha.model.gpt import GPT
from kotha.storage.atomic import atomic_path
from kotha.text.tokenizer.chat import ChatTemplate
from kotha.text.tokenizer.tokenizer import Tokenizer

# The weight types, and their names in the GGUF metadata.
KINDS = {"f32": "ALL_F32", "f16": "MOSTLY_F16", "q8_0": "MOSTLY_Q8_0", "q4_0": "MOSTLY_Q4_0"}
_TABLES = ("token_embd.weight", "output.weight")
_UNKNOWN = About()
_LAYOUTS = load_layouts(Path(__file__).with_name("layouts.toml"))


def layout_of(config: ModelConfig) -> Layout:
    """Return llama.cpp's architecture for a config; if there is none, the error lists the unsupported settings.

    >>> from kotha.model.presets import preset
    >>> layout_of(preset("bangla-58m")).name, layout_of(preset("pocket")).name
    ('gpt2', 'qwen3')
    """
    return fitting_layout(config, _LAYOUTS, "llama.cpp has no architecture for this model: {because}; export to hf")


def _export(job: ExportJob) -> ParityReport:
    """Write a GGUF file and verify it with llama.cpp."""
    model = cast("GPT", our_side(job.bundle).model)  # only GPTs have an architecture in llama.cpp
    vocabulary, wider = write_file(model, job.tokenizer, job.path, job.weights, job.about)
    report = check_file(model, job.tokenizer, job.path, job.weights, vocabulary, job.lines)
    report.architecture = layout_of(model.config).name
    if wider:
        message = "{n} matrices stay in float16, because their row length is not a multiple of 32: {names}"
        report.remarks.append(Message(message, n=len(wider), names=wider[:4]))
    return report


def write_file(
    model: GPT, tokenizer: Tokenizer, path: Path, kind: str, about: About = _UNKNOWN
) -> tuple[Vocabulary, list[str]]:
    """Write a model to one file atomically; return the vocabulary and the names of matrices that stay in float16."""
    require_libraries("gguf")
    gguf: Any = import_module("gguf")
    vocabulary, layout = vocabulary_of(tokenizer, model.config.vocab_size), layout_of(model.config)
    with atomic_path(path) as partial:
        writer = gguf.GGUFWriter(partial, layout.name)
        writer.add_name(path.stem)
        if about.license is not None:
            writer.add_license(about.license)
        if about.language is not None:
            writer.add_languages([about.language])
        writer.add_file_type(gguf.LlamaFileType[KINDS[kind]])
        writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
        sizes = {name: getattr(model.config, ours) for ours, theirs in layout.settings.items() for name in theirs}
        for name, value in {**sizes, **vocabulary.fields}.items():
            getattr(writer, f"add_{name}")(value)
        for name, value in vocabulary.others.items():
            add = writer.add_bool if isinstance(value, bool) else writer.add_uint32
            add(f"tokenizer.ggml.{name}", value)
        template = ChatTemplate.of(tokenizer)
        if template is not None:  # otherwise llama.cpp uses ChatML, whose tokens this vocabulary lacks
            writer.add_chat_template(template.jinja())
        wider = []
        for name, tensor in tensors_of(model).items():
            stored = _stored_kind(name, tensor, kind)
            _add_tensor(gguf, writer, name, tensor, stored)
            if kind.startswith("q") and stored == "f16":
                wider.append(name)
        with closing(writer):
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_tensors_to_file()
    return vocabulary, wider


def tensors_of(model: GPT) -> dict[str, Tensor]:
    """Return all weights in float32, by their names in llama.cpp.

    In llama.cpp's ``llama``, rotary positions rotate pairs of adjacent numbers in a head, while Llama's own weights and
    Kotha's pair the first half with the second, so queries and keys are permuted. (``qwen3`` pairs the halves and needs
    no permutation.)
    """
    layout = layout_of(model.config)
    found = foreign_weights(model, layout)
    if layout.name == "llama":
        rotated = [name for name in found if name.endswith(("attn_q.weight", "attn_k.weight"))]
        found |= {name: _interleave(found[name], model.config.d_head) for name in rotated}
    return found


def _interleave(weight: Tensor, d_head: int) -> Tensor:
    """Make the two numbers of each rotated pair adjacent: (H D, C) -> (H D, C)."""
    halves = weight.view(-1, 2, d_head // 2, weight.shape[-1])
    return halves.transpose(1, 2).reshape(weight.shape)


def _stored_kind(name: str, tensor: Tensor, kind: str) -> str:
    if kind == "f32" or tensor.dim() < 2 or name == "position_embd.weight":
        return "f32"
    if kind.startswith("q") and tensor.shape[-1] % 32:
        return "f16"
    return "q8_0" if kind == "q4_0" and name in _TABLES else kind


class _Written(np.ndarray[Any, Any]):
    """An array that is written through a Python file object.

    NumPy's own ``tofile`` uses a C buffer, and does not report errors when the buffer is flushed: on a full disk the
    last weights would be missing without an error.
    """

    def tofile(self, fid: Any, sep: str = "", format: str = "%s") -> None:
        """Write the bytes; ``sep`` and ``format`` (for text) are not used by the gguf library."""
        fid.write(np.ascontiguousarray(self).data)


def _add_tensor(gguf: Any, writer: Any, name: str, tensor: Tensor, kind: str) -> None:
    if kind == "f16":
        tensor = fitting(name, tensor, torch.float16)
    stored = gguf.GGMLQuantizationType[kind.upper()]
    writer.add_tensor(name, gguf.quants.quantize(tensor.numpy(), stored).view(_Written), raw_dtype=stored)


GGUF = Exporter(
    opens=lambda config: Message("opens in llama.cpp as {name}", name=layout_of(config).name),
    export=_export,
    weights=("f16", "f32", "q8_0", "q4_0"),
    file_name="model-{weights}.gguf",
    endings=(".gguf",),
    needs_tokenizer=Message("a GGUF file"),
)


# Fraction of most likely tokens that must match; int8 changes some near-ties, and for q4_0 it is only reported.
_LEAST_EQUAL = {"f32": 0.99, "f16": 0.99, "q8_0": 0.9}


class Reply(NamedTuple):
    """The output of llama.cpp."""

    ids: list[list[int]]
    text: list[str]
    logits: Tensor  # (positions, V); empty if none were requested


def ask_llamacpp(model: Path, **request: Any) -> Reply:
    """Run llama.cpp on a GGUF file.

    ``lines`` are prompts to encode, and ``decode`` contains lists of ids to decode. ``windows`` contains lists of ids
    for which logits are computed; they are returned concatenated, (positions, V).
    """
    with tempfile.TemporaryDirectory(prefix="kotha-llamacpp-") as name:
        folder = Path(name)
        content = json.dumps({"model": str(model.resolve()), **request})
        (folder / llamacpp.REQUEST).write_text(content, encoding="utf-8")
        command = [sys.executable, "-P", str(llamacpp.__file__), str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if "rror" in line or "unsupported" in line]
            raise KothaError(
                "llama.cpp failed on {path}: {why}",
                path=model,
                why="; ".join(errors[-3:]) or f"exit {done.returncode}",
            )
        found = json.loads((folder / llamacpp.ANSWER).read_text(encoding="utf-8"))
        return Reply(**found, logits=torch.from_numpy(np.load(folder / llamacpp.LOGITS)))


@torch.inference_mode()
def check_file(
    model: GPT, tokenizer: Tokenizer, path: Path, kind: str, vocabulary: Vocabulary, lines: Sequence[str]
) -> ParityReport:
    """Compare a GGUF file, run in llama.cpp, with the model from which it was exported."""
    judged: dict[str, Any] = {"tolerance": None, "least_best_equal": _LEAST_EQUAL.get(kind)}
    report = ParityReport.of("gguf", "xllamacpp", "llama.cpp ({name} {version})", **judged)
    if report.peer is None:
        return report
    normalized = lines if vocabulary.normalizes else [tokenizer.normalize(line) for line in lines]
    most = llamacpp.MOST_POSITIONS
    rows = logit_rows(model.config, tokenizer, lines, -(-most // model.config.context_length), most)
    found = ask_llamacpp(path, lines=[*normalized, *lines], windows=rows.tolist())
    theirs, read = dict(zip(normalized, found.ids, strict=False)), prompt_reader(tokenizer)
    report.compare_lines(read, theirs.__getitem__, normalized)
    report.compare_logits([(model(rows).flatten(0, 1), found.logits)])
    report.remarks.append(Message("llama.cpp stores keys and values in float16"))
    if model.config.activation == "gelu":
        report.remarks.append(
            Message("llama.cpp computes GELU with the tanh approximation, but this model uses the exact formula")
        )
    if not vocabulary.normalizes:
        as_written = sum(read(line) != ids for line, ids in zip(lines, found.ids[len(lines) :], strict=True))
        report.remarks.append(
            Message(
                "llama.cpp does not normalize text: {n:,} of {total:,} lines are tokenized differently unless they are "
                "normalized first",
                n=as_written,
                total=len(lines),
            )
        )
    report.remarks += vocabulary.remarks
    return report
