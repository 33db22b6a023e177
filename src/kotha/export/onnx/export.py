"""ONNX: the model as a graph that onnxruntime runs, in a browser, a phone or a server, without Python or torch.

A folder with one graph (GPT, BERT, ViT) or two (Seq2Seq), the tokenizer beside it, and ``onnx.json``, which names every
input and output. Batch and length are free; a GPT's past keys and values go in and come out (see ``graphs.py``).
Weights are float32. ``check.py`` runs the folder in onnxruntime before it is handed over.
"""

import importlib.util
import io
import json
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import torch

from kotha.artifacts.model_folder import Bundle
from kotha.errors import KothaError
from kotha.export.exporter import Exporter, ExportJob, with_marks_of
from kotha.export.layouts import UnsupportedError
from kotha.export.onnx.check import check_graphs
from kotha.export.onnx.graphs import Graph, Sizes, graphs_of
from kotha.export.parity import ParityReport, our_side, rounding
from kotha.i18n.message import Message, Text
from kotha.model.attention import set_reading
from kotha.model.config import ClassifierConfig, GPTConfig, ModelConfig
from kotha.storage.atomic import atomic_directory, atomic_write
from kotha.storage.destinations import is_made_of
from kotha.text.tokenizer.tokenizer import FILE_NAME as TOKENIZER_FILE

DESCRIPTION, FORMAT = "onnx.json", "kotha-onnx"
_WRITTEN = (
    TOKENIZER_FILE,
    *(f"{name}.onnx{more}" for name in ("model", "encoder", "decoder") for more in ("", ".data")),
)
# What one protobuf file can hold; the weights of larger models lie in a file beside it.
_MOST_BYTES = 1_900_000_000


def _opens(config: ModelConfig) -> Text:
    if isinstance(config, ClassifierConfig):
        because = Message("family={family!r}: ours take no classifiers; export this one to hf", family=config.family)
        raise UnsupportedError("no ONNX graph: {because}", because=because)
    cached = Message("opens in onnxruntime, with a cache")
    return cached if isinstance(config, GPTConfig) else Message("opens in onnxruntime")


def _export(job: ExportJob) -> ParityReport:
    """Write a folder of graphs, whole or not at all, and compare it in onnxruntime before it is handed over."""
    for name in ("onnx", "onnxscript"):
        if importlib.util.find_spec(name) is None:
            raise KothaError(
                "writing ONNX needs {name}: pip install 'kotha[onnx]', or pip install onnx onnxscript", name=name
            )
    ours, spelled = our_side(job.bundle), our_side(job.bundle).model
    set_reading(spelled, "explicit")  # line by line: plain operations, which every runtime knows, grouped heads too
    with atomic_directory(job.path, lambda old: job.settings.overwrite and _is_ours(old)) as folder:
        graphs = graphs_of(spelled)
        for graph in graphs:
            _write_graph(graph, folder / f"{graph.name}.onnx")
        if ours.tokenizer is not None:
            with_marks_of(ours.tokenizer, ours.config).save(folder)
        atomic_write(folder / DESCRIPTION, json.dumps(_describe(ours, graphs), ensure_ascii=False, indent=1) + "\n")
        report = check_graphs(ours.model, ours.tokenizer, folder, job.lines)
    report.note(rounding(job.bundle, torch.float32))
    return report


export_onnx = Exporter(opens=_opens, export=_export, weights=("float32",))


def _write_graph(graph: Graph, path: Path) -> None:
    n_bytes = sum(4 * parameter.numel() for parameter in graph.module.parameters())
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
        assert program is not None, "the exporter gave no program"
        for node in program.model.graph:
            node.metadata_props.clear()  # it writes down the lines of code, with this machine's paths
        program.save(path, external_data=n_bytes > _MOST_BYTES)


def _free_sizes(graph: Graph) -> tuple[Any, ...]:
    """Which sizes of each input are free, in the shape of the examples."""
    free = iter(graph.inputs.values())

    def of(example: Any) -> Any:
        if isinstance(example, list):
            return [of(each) for each in example]
        return dict.fromkeys(next(free), torch.export.Dim.DYNAMIC)

    return tuple(of(example) for example in graph.examples)


def _describe(bundle: Bundle, graphs: Sequence[Graph]) -> dict[str, Any]:
    """What onnx.json says."""

    def sides(named: dict[str, Sizes]) -> dict[str, dict[str, str]]:
        return {name: {str(place): size for place, size in sizes.items()} for name, sizes in named.items()}

    return {
        "format": FORMAT,
        "graphs": {
            f"{graph.name}.onnx": {"inputs": sides(graph.inputs), "outputs": sides(graph.outputs)} for graph in graphs
        },
        "about": "each input and output with its free sizes, by place; start with a past of length 0, then feed each "
        "present back as the past; ids are int64, real is boolean (False at padding), all else float32",
        "model": bundle.config.to_dict(),
        "tokenizer": None if bundle.tokenizer is None else bundle.tokenizer.fingerprint,
        **({} if bundle.chat is None else {"chat_template": bundle.chat.jinja()}),
    }


def _is_ours(folder: Path) -> bool:
    return is_made_of(folder, DESCRIPTION, lambda values: values.get("format") == FORMAT, _WRITTEN)


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter's progress and remarks on itself are not for the user; its errors are."""
    level = logging.root.manager.disable
    try:
        logging.disable(logging.WARNING)
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
