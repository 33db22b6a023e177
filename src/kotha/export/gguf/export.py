"""GGUF: the file that llama.cpp, and what is built on it, opens.

``layouts.toml`` says which of its architectures a model is: classic GPTs (LayerNorm, learned positions, GELU) are its
``gpt2``, modern ones with QK-norm its ``qwen3``, without its ``llama``. ``vocabulary.py`` turns the tokenizer into its
words. Here the file is written, with what the model is, its vocabulary and its weights in the chosen kind, and real
llama.cpp (``llamacpp.py``) is asked whether it is still the same model.

``f32`` and ``f16`` store numbers as they are or rounded; quantization (``q8_0``, ``q4_0``) stores blocks of 32 along a
row with one scale. Norms, biases and positions are small and stay in float32. A row that does not divide into blocks
stays in float16 and is named in the result; embeddings and head are kept at eight bits in ``q4_0``, as llama.cpp does.

Three kinds of difference are known and named in the report. llama.cpp keeps keys and values in float16, so even f32
weights give logits that are a little off; what counts is whether the best token is the same. Its gpt2 computes GELU by
tanh's approximation, whatever the model was trained with. And with a BPE it does not normalize: tokens are then
compared on normalized lines, and the report counts the lines that would have read otherwise as they stand.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from kotha.errors import KothaError, library
from kotha.export.card import About
from kotha.export.exporter import Exporter, ExportJob
from kotha.export.gguf import llamacpp
from kotha.export.gguf.vocabulary import Vocabulary, vocabulary_of
from kotha.export.parity import ParityReport, logit_rows, our_side, prompt_reader
from kotha.export.weight_names import Layout, fitting, fitting_layout, foreign_weights, load_layouts
from kotha.i18n.message import Message
from kotha.model.config import ModelConfig
from kotha.model.gpt import GPT
from kotha.storage.atomic import atomic_path
from kotha.text.tokenizer.chat import ChatTemplate
from kotha.text.tokenizer.tokenizer import Tokenizer

# The kinds of weights, and what a file of each is called there.
KINDS = {"f32": "ALL_F32", "f16": "MOSTLY_F16", "q8_0": "MOSTLY_Q8_0", "q4_0": "MOSTLY_Q4_0"}
_TABLES = ("token_embd.weight", "output.weight")
_UNKNOWN = About()
_LAYOUTS = load_layouts(Path(__file__).with_name("layouts.toml"))


def layout_of(config: ModelConfig) -> Layout:
    """llama.cpp's architecture for a config; a config that has none is refused with what is in the way.

    >>> from kotha.model.presets import preset
    >>> layout_of(preset("bangla-58m")).name, layout_of(preset("pocket")).name
    ('gpt2', 'qwen3')
    """
    return fitting_layout(config, _LAYOUTS, "llama.cpp has no architecture for this model: {because}; export to hf")


def _export(job: ExportJob) -> ParityReport:
    """Write a GGUF file, and compare it in llama.cpp."""
    model = cast("GPT", our_side(job.bundle).model)  # what has an architecture there is one
    vocabulary, wider = write_file(model, job.tokenizer, job.path, job.weights, job.about)
    report = check_file(model, job.tokenizer, job.path, job.weights, vocabulary, job.lines)
    report.architecture = layout_of(model.config).name
    if wider:
        stay = "{n} matrices stay in float16, because their row length is not a multiple of 32: {names}"
        report.remarks.append(Message(stay, n=len(wider), names=wider[:4]))
    return report


def write_file(
    model: GPT, tokenizer: Tokenizer, path: Path, kind: str, about: About = _UNKNOWN
) -> tuple[Vocabulary, list[str]]:
    """Write a model as one file, whole or not at all; the vocabulary as written, and the weights kept in float16."""
    gguf = library(
        "gguf", Message("writing GGUF needs the gguf library: pip install 'kotha[gguf]', or pip install gguf")
    )
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
        if template is not None:  # left out, llama.cpp would write ChatML, with marks that this vocabulary lacks
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
    """Every weight in float32 by its name in llama.cpp.

    ``llama`` turns neighbouring numbers of a head, where Llama's own weights, and ours, turn the first half against the
    second: its queries and keys are dealt out anew (``qwen3`` is not: it turns halves).
    """
    layout = layout_of(model.config)
    found = foreign_weights(model, layout)
    if layout.name == "llama":
        turned = [name for name in found if name.endswith(("attn_q.weight", "attn_k.weight"))]
        found |= {name: _neighbours(found[name], model.config.d_head) for name in turned}
    return found


def _neighbours(weight: Tensor, d_head: int) -> Tensor:
    """Put the two numbers that are turned together side by side: (H D, C) -> (H D, C)."""
    halves = weight.view(-1, 2, d_head // 2, weight.shape[-1])
    return halves.transpose(1, 2).reshape(weight.shape)


def _stored_kind(name: str, tensor: Tensor, kind: str) -> str:
    if kind == "f32" or tensor.dim() < 2 or name == "position_embd.weight":
        return "f32"
    if kind.startswith("q") and tensor.shape[-1] % 32:
        return "f16"
    return "q8_0" if kind == "q4_0" and name in _TABLES else kind


class _Written(np.ndarray[Any, Any]):
    """Numbers that Python writes to a file.

    numpy hands them to a buffer of C's, and never learns whether what is left in it at the end comes to the disk: on a
    full one the small weights would be missing, and nobody would say so.
    """

    def tofile(self, fid: Any, sep: str = "", format: str = "%s") -> None:
        """What the library calls; text, which the other arguments are for, is never asked for."""
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


# Best tokens that must be the same; eight bits turn some near draws, and at four bits it is told and not judged.
_LEAST_EQUAL = {"f32": 0.99, "f16": 0.99, "q8_0": 0.9}


class Reply(NamedTuple):
    """What llama.cpp said."""

    ids: list[list[int]]
    text: list[str]
    logits: Tensor  # (positions, V); empty where nothing was asked


def ask_llamacpp(model: Path, **asked: Any) -> Reply:
    """Ask real llama.cpp about a file.

    ``lines`` are prompts to encode, ``decode`` lists of ids to turn into text; ``windows`` are lists of ids whose
    logits come joined, (positions, V).
    """
    with tempfile.TemporaryDirectory(prefix="kotha-llamacpp-") as name:
        folder = Path(name)
        request = json.dumps({"model": str(model.resolve()), **asked})
        (folder / llamacpp.REQUEST).write_text(request, encoding="utf-8")
        command = [sys.executable, "-P", str(llamacpp.__file__), str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if "rror" in line or "unsupported" in line]
            raise KothaError(
                "llama.cpp failed on {path}: {why}",
                path=model,
                why="; ".join(said[-3:]) or f"exit {done.returncode}",
            )
        found = json.loads((folder / llamacpp.ANSWER).read_text(encoding="utf-8"))
        return Reply(**found, logits=torch.from_numpy(np.load(folder / llamacpp.LOGITS)))


@torch.inference_mode()
def check_file(
    model: GPT, tokenizer: Tokenizer, path: Path, kind: str, vocabulary: Vocabulary, lines: Sequence[str]
) -> ParityReport:
    """Compare a file in llama.cpp with the model that it was written from."""
    judged: dict[str, Any] = {"tolerance": None, "least_best_equal": _LEAST_EQUAL.get(kind)}
    report = ParityReport.of("gguf", "xllamacpp", "llama.cpp ({name} {version})", **judged)
    if report.peer is None:
        return report
    plain = lines if vocabulary.normalizes else [tokenizer.normalize(line) for line in lines]
    most = llamacpp.MOST_POSITIONS
    rows = logit_rows(model.config, tokenizer, lines, -(-most // model.config.context_length), most)
    found = ask_llamacpp(path, lines=[*plain, *lines], windows=rows.tolist())
    theirs, read = dict(zip(plain, found.ids, strict=False)), prompt_reader(tokenizer)
    report.compare_lines(read, theirs.__getitem__, plain)
    report.compare_logits([(model(rows).flatten(0, 1), found.logits)])
    report.remarks.append(Message("llama.cpp stores keys and values in float16"))
    if model.config.activation == "gelu":
        report.remarks.append(
            Message("llama.cpp computes GELU by the tanh approximation, this model by the exact formula")
        )
    if not vocabulary.normalizes:
        as_written = sum(read(line) != ids for line, ids in zip(lines, found.ids[len(lines) :], strict=True))
        report.remarks.append(
            Message(
                "llama.cpp does not normalize text: {n:,} of {total:,} lines give other tokens unless they "
                "are normalized first",
                n=as_written,
                total=len(lines),
            )
        )
    report.remarks += vocabulary.remarks
    return report
