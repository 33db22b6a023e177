"""Export to ONNX: graphs that onnxruntime runs in a browser, on a phone or on a server, without Python or torch.

The result is a folder with one graph (GPT, BERT, ViT) or two (Seq2Seq), the tokenizer, and ``onnx.json``, which
describes every input and output. Batch size and length are dynamic; a GPT's past keys and values are inputs and outputs
(see ``graphs.py``). Weights are float32. The graphs are run in onnxruntime and compared with the model before the
folder is moved into place.
"""

import io
import json
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kotha.artifacts.model_folder import Bundle
from kotha.export.exporter import Exporter, ExportJob, with_marks_of
from kotha.export.libraries import require_libraries
from kotha.export.onnx.graphs import Graph, Sizes, empty_past, graphs_of, past_names
from kotha.export.parity import ParityReport, logit_rows, our_side, questions, rounding
from kotha.export.weight_names import UnsupportedError
from kotha.i18n.message import Message, Text
from kotha.model.attention import set_implementation
from kotha.model.config import ClassifierConfig, GPTConfig, ModelConfig, TextConfig
from kotha.model.family import Model
from kotha.model.gpt import GPT
from kotha.model.seq2seq import Seq2Seq
from kotha.storage.atomic import atomic_directory, atomic_write
from kotha.storage.output_paths import is_made_of
from kotha.text.tokenizer.tokenizer import FILE_NAME as TOKENIZER_FILE
from kotha.text.tokenizer.tokenizer import Tokenizer

DESCRIPTION, FORMAT = "onnx.json", "kotha-onnx"
_WRITTEN = (
    TOKENIZER_FILE,
    *(f"{name}.onnx{more}" for name in ("model", "encoder", "decoder") for more in ("", ".data")),
)


def _opens(config: ModelConfig) -> Text:
    if isinstance(config, ClassifierConfig):
        because = Message(
            "family={family!r}: classifiers cannot be exported to ONNX; export to hf", family=config.family
        )
        raise UnsupportedError("cannot export to ONNX: {because}", because=because)
    cached = Message("opens in onnxruntime, with a KV cache")
    return cached if isinstance(config, GPTConfig) else Message("opens in onnxruntime")


def _export(job: ExportJob) -> ParityReport:
    """Write a folder of graphs atomically, after comparing them in onnxruntime."""
    require_libraries("onnx")
    ours, explicit = our_side(job.bundle), our_side(job.bundle).model
    # The explicit implementation uses only basic operations, even for grouped heads, which every runtime supports.
    set_implementation(explicit, "explicit")
    with atomic_directory(job.path, lambda old: job.overwrite and _is_ours(old)) as folder:
        graphs = graphs_of(explicit)
        for graph in graphs:
            _write_graph(graph, folder / f"{graph.name}.onnx")
        if ours.tokenizer is not None:
            with_marks_of(ours.tokenizer, ours.config).save(folder)
        atomic_write(folder / DESCRIPTION, json.dumps(_describe(ours, graphs), ensure_ascii=False, indent=1) + "\n")
        report = check_graphs(ours.model, ours.tokenizer, folder, job.lines)
    report.remarks += rounding(job.bundle, torch.float32)
    return report


ONNX = Exporter(opens=_opens, export=_export, weights=("float32",))


def _write_graph(graph: Graph, path: Path) -> None:
    with _quiet(), torch.inference_mode():
        program = torch.onnx.export(
            graph.module,
            graph.examples,
            input_names=list(graph.inputs),
            output_names=list(graph.outputs),
            dynamic_shapes=_free_sizes(graph),
            dynamo=True,
            verbose=False,
        )
        assert program is not None, "torch.onnx.export returned no program"
        for node in program.model.graph:
            node.metadata_props.clear()  # source lines, which contain paths on this machine
        program.save(path)


def _free_sizes(graph: Graph) -> tuple[Any, ...]:
    """Return the dynamic dimensions of each input, in the same structure as the examples."""
    dynamic = iter(graph.inputs.values())

    def of(example: Any) -> Any:
        if isinstance(example, list):
            return [of(each) for each in example]
        return dict.fromkeys(next(dynamic), torch.export.Dim.DYNAMIC)

    return tuple(of(example) for example in graph.examples)


def _describe(bundle: Bundle, graphs: Sequence[Graph]) -> dict[str, Any]:
    """Return the content of onnx.json."""

    def sides(named: dict[str, Sizes]) -> dict[str, dict[str, str]]:
        return {name: {str(dimension): size for dimension, size in sizes.items()} for name, sizes in named.items()}

    return {
        "format": FORMAT,
        "graphs": {
            f"{graph.name}.onnx": {"inputs": sides(graph.inputs), "outputs": sides(graph.outputs)} for graph in graphs
        },
        "about": "each input and output with its dynamic dimensions by index; start with a past of length 0, then pass "
        "each present as the next past; ids are int64, real is boolean (False at padding), all others float32",
        "model": bundle.config.to_dict(),
        "tokenizer": None if bundle.tokenizer is None else bundle.tokenizer.fingerprint,
        **({} if bundle.chat is None else {"chat_template": bundle.chat.jinja()}),
    }


def _is_ours(folder: Path) -> bool:
    return is_made_of(folder, DESCRIPTION, lambda values: values.get("format") == FORMAT, _WRITTEN)


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the exporter's progress output and warnings; errors are raised."""
    level = logging.root.manager.disable
    try:
        logging.disable(logging.WARNING)
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


class Session:
    """A graph in onnxruntime that takes named arrays and returns named tensors."""

    def __init__(self, path: Path) -> None:
        onnxruntime = import_module("onnxruntime")
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3  # errors only
        options.intra_op_num_threads = torch.get_num_threads()
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self._outputs = [output.name for output in self._session.get_outputs()]

    def __call__(self, **inputs: Any) -> dict[str, Tensor]:
        """Run the graph."""
        arrays = {name: np.ascontiguousarray(value.numpy()) for name, value in inputs.items()}
        found = self._session.run(None, arrays)
        return {name: torch.from_numpy(value) for name, value in zip(self._outputs, found, strict=True)}


@torch.inference_mode()
def check_graphs(model: Model, tokenizer: Tokenizer | None, folder: Path, lines: Sequence[str]) -> ParityReport:
    """Compare the graphs in a folder, run in onnxruntime, with the model from which they were exported."""
    report = ParityReport.of("onnx", "onnxruntime")
    if report.peer is None:
        return report
    config = model.config
    rows = logit_rows(config, tokenizer, lines) if isinstance(config, TextConfig) else torch.empty(0)
    inputs = questions(model, rows)
    ours = model(*inputs.values())
    theirs: Sequence[Tensor]
    match model:
        case GPT():
            theirs = [_in_pieces(Session(folder / "model.onnx"), inputs["ids"], model.stack.blocks)]
        case Seq2Seq():
            ids, decoder = inputs.pop("ids"), Session(folder / "decoder.onnx")
            given = {**Session(folder / "encoder.onnx")(**inputs), "real": inputs["real"]}
            theirs = [_in_pieces(lambda **more: decoder(**given, **more), ids, model.decoder.blocks)]
        case _:
            theirs = list(Session(folder / "model.onnx")(**inputs).values())
    report.compare_logits(zip([ours] if isinstance(ours, Tensor) else ours, theirs, strict=True))
    return report


def _in_pieces(steps: Callable[..., dict[str, Tensor]], ids: Tensor, blocks: nn.ModuleList) -> Tensor:
    """Return the logits of a text that a graph processes in two parts, the second with the cache from the first."""
    past = dict(zip(past_names(len(blocks)), empty_past(blocks, len(ids)), strict=True))
    found = []
    for piece in torch.split(ids, -(-ids.shape[1] // 2), dim=1):
        answer = steps(ids=piece, **past)
        found.append(answer.pop("logits"))
        past = {name.replace("present", "past"): value for name, value in answer.items()}
    return torch.cat(found, dim=1)
