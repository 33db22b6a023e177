"""The proof of the graphs: the same questions to our model and to onnxruntime."""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kotha.export.onnx.graphs import empty_past, past_names
from kotha.export.parity import ParityReport, logit_rows, questions
from kotha.model.config import TextConfig
from kotha.model.family import Model
from kotha.model.gpt import GPT
from kotha.model.seq2seq import Seq2Seq
from kotha.text.tokenizer.tokenizer import Tokenizer


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
    report = ParityReport.of("onnx", "onnxruntime")
    if report.peer is None:
        return report
    text = isinstance(model.config, TextConfig)
    asked = questions(model, logit_rows(model.config, tokenizer, lines) if text else torch.empty(0))
    ours = model(*asked.values())
    theirs: Sequence[Tensor]
    match model:
        case GPT():
            theirs = [_in_pieces(Session(folder / "model.onnx"), asked["ids"], model.stack.blocks)]
        case Seq2Seq():
            ids, decoder = asked.pop("ids"), Session(folder / "decoder.onnx")
            given = {**Session(folder / "encoder.onnx")(**asked), "real": asked["real"]}
            theirs = [_in_pieces(lambda **more: decoder(**given, **more), ids, model.decoder.blocks)]
        case _:
            theirs = list(Session(folder / "model.onnx")(**asked).values())
    report.compare_logits(zip([ours] if isinstance(ours, Tensor) else ours, theirs, strict=True))
    return report


def _in_pieces(steps: Callable[..., dict[str, Tensor]], ids: Tensor, blocks: nn.ModuleList) -> Tensor:
    """The logits of a graph that reads a text in two pieces, the second behind the keys and values of the first."""
    past = dict(zip(past_names(len(blocks)), empty_past(blocks, len(ids)), strict=True))
    found = []
    for piece in torch.split(ids, -(-ids.shape[1] // 2), dim=1):
        answer = steps(ids=piece, **past)
        found.append(answer.pop("logits"))
        past = {name.replace("present", "past"): value for name, value in answer.items()}
    return torch.cat(found, dim=1)
