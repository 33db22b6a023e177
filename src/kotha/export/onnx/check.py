"""The proof of the graphs: the same questions to our model and to onnxruntime."""

import importlib.util
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kotha.export.onnx.graphs import empty_past, past_names
from kotha.export.parity import ParityReport, not_checked, with_logits
from kotha.model.bert import BERT
from kotha.model.family import Model
from kotha.model.gpt import GPT
from kotha.model.seq2seq import Seq2Seq
from kotha.model.vit import ViT
from kotha.text.tokenizer.tokenizer import Tokenizer

_ROWS, _LENGTH = 2, 128


class Session:
    """A graph opened by onnxruntime: named arrays in, named tensors out."""

    def __init__(self, path: Path) -> None:
        onnxruntime = import_module("onnxruntime")
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3  # errors only
        options.intra_op_num_threads = torch.get_num_threads()
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self._outputs = [output.name for output in self._session.get_outputs()]

    def __call__(self, **inputs: Any) -> dict[str, Tensor]:
        """Run it once."""
        arrays = {name: np.ascontiguousarray(value.numpy()) for name, value in inputs.items()}
        found = self._session.run(None, arrays)
        return {name: torch.from_numpy(value) for name, value in zip(self._outputs, found, strict=True)}


@torch.inference_mode()
def check_graphs(model: Model, tokenizer: Tokenizer | None, folder: Path, lines: Sequence[str]) -> ParityReport:
    """Compare a folder's graphs in onnxruntime with the model that they were made from."""
    if importlib.util.find_spec("onnxruntime") is None:
        return not_checked("onnx", "onnxruntime")
    report = ParityReport("onnx", peer=f"onnxruntime {version('onnxruntime')}")
    if isinstance(model, ViT):
        size = model.config.image_size
        images = torch.rand(3, model.config.n_channels, size, size, generator=torch.Generator().manual_seed(0))
        return with_logits(report, [(model(images), Session(folder / "model.onnx")(images=images)["logits"])])
    assert isinstance(model, GPT | BERT | Seq2Seq), "no graph was written for another"
    rows = _rows(model, tokenizer, lines)
    real, segments = torch.ones_like(rows, dtype=torch.bool), torch.zeros_like(rows)
    real[1:, rows.shape[1] // 2 :] = False  # one row with padding, where a family knows it
    if isinstance(model, GPT):
        theirs = _in_pieces(Session(folder / "model.onnx"), rows, model.stack.blocks)
        return with_logits(report, [(model(rows), theirs)])
    if isinstance(model, BERT):
        segments[:, rows.shape[1] // 3 :] = model.config.n_segments - 1
        ours, found = (
            model(rows, segments, real),
            Session(folder / "model.onnx")(ids=rows, segments=segments, real=real),
        )
        return with_logits(report, [(mine, found[name]) for name, mine in ours._asdict().items()])
    encoded, decoder = Session(folder / "encoder.onnx")(source=rows, real=real), Session(folder / "decoder.onnx")
    target = rows.flip(1)
    theirs = _in_pieces(lambda **asked: decoder(**encoded, real=real, **asked), target, model.decoder.blocks)
    return with_logits(report, [(model(rows, target, real), theirs)])


def _in_pieces(steps: Callable[..., dict[str, Tensor]], ids: Tensor, blocks: nn.ModuleList) -> Tensor:
    """The logits of a graph that reads a text in two pieces, the second behind the keys and values of the first."""
    past = dict(zip(past_names(len(blocks)), empty_past(blocks, len(ids)), strict=True))
    found = []
    for piece in torch.split(ids, -(-ids.shape[1] // 2), dim=1):
        answer = steps(ids=piece, **past)
        found.append(answer.pop("logits"))
        past = {name.replace("present", "past"): value for name, value in answer.items()}
    return torch.cat(found, dim=1)


def _rows(model: GPT | BERT | Seq2Seq, tokenizer: Tokenizer | None, lines: Sequence[str]) -> Tensor:
    """Rows of real text, (B, T); of any ids where the model came without a tokenizer."""
    length = min(model.config.context_length, _LENGTH)
    if tokenizer is None:
        return torch.randint(model.config.vocab_size, (_ROWS, length), generator=torch.Generator().manual_seed(0))
    ids = [token for line in lines if line for token in tokenizer.encode(line)]
    while len(ids) < _ROWS * length:
        ids += ids or [0]
    return torch.tensor(ids[: _ROWS * length]).view(_ROWS, length)
