"""The proof of the graphs: the same questions to our model and to onnxruntime, with and without the cache."""

import importlib.util
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kotha.export.onnx.graphs import empty_past, past_names
from kotha.export.parity import ParityReport, built_in_lines, first_difference, with_greedy, with_logits
from kotha.i18n.message import Message
from kotha.model.bert import BERT
from kotha.model.config import TextConfig
from kotha.model.family import Model
from kotha.model.gpt import GPT
from kotha.model.seq2seq import Seq2Seq
from kotha.model.vit import ViT
from kotha.text.tokenizer.tokenizer import Tokenizer

_GREEDY_TOKENS, _ROWS = 100, 2


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


def check_graphs(model: Model, tokenizer: Tokenizer | None, folder: Path, lines: Sequence[str] | None) -> ParityReport:
    """Compare a folder's graphs in onnxruntime with the model that they were made from."""
    report = ParityReport("onnx")
    if importlib.util.find_spec("onnxruntime") is None:
        return replace(report, remark=Message("not checked: onnxruntime is missing (pip install onnxruntime)"))
    report = replace(report, peer=f"onnxruntime {version('onnxruntime')}")
    with torch.inference_mode():
        if isinstance(model, Seq2Seq):
            return _check_seq2seq(report, model, folder, _rows(model, tokenizer, lines))
        session = Session(folder / "model.onnx")
        if isinstance(model, ViT):
            size = model.config.image_size
            images = torch.rand(3, model.config.n_channels, size, size, generator=torch.Generator().manual_seed(0))
            return with_logits(report, [(model(images).float().cpu(), session(images=images)["logits"])])
        assert isinstance(model, GPT | BERT), "no graph was written for another"
        rows = _rows(model, tokenizer, lines)
        if isinstance(model, BERT):
            return _check_bert(report, model, session, rows)
        blocks, n_prompt = model.stack.blocks, max(1, model.config.context_length // 8)
        return _with_cache(report, lambda ids: model(ids).float(), session, rows, n_prompt, blocks, model.config)


def _check_seq2seq(report: ParityReport, model: Seq2Seq, folder: Path, rows: Tensor) -> ParityReport:
    encoder, decoder = Session(folder / "encoder.onnx"), Session(folder / "decoder.onnx")
    real = torch.ones_like(rows, dtype=torch.bool)
    real[1:, rows.shape[1] // 2 :] = False  # one row with padding
    memory = encoder(source=rows, real=real)["encoded"]

    def ours(ids: Tensor) -> Any:
        return model(rows[: len(ids)], ids, real[: len(ids)]).float()

    def steps(ids: Tensor, **past: Tensor) -> dict[str, Tensor]:
        return decoder(encoded=memory[: len(ids)], real=real[: len(ids)], ids=ids, **past)

    return _with_cache(report, ours, steps, rows.flip(1), 1, model.decoder.blocks, model.config)


def _check_bert(report: ParityReport, model: BERT, session: Session, rows: Tensor) -> ParityReport:
    real, segments = torch.ones_like(rows, dtype=torch.bool), torch.zeros_like(rows)
    real[1:, rows.shape[1] // 2 :] = False
    segments[:, rows.shape[1] // 3 :] = model.config.n_segments - 1
    ours, theirs = model(rows, segments, real), session(ids=rows, segments=segments, real=real)
    return with_logits(report, [(mine.float().cpu(), theirs[name]) for name, mine in ours._asdict().items()])


def _in_two_parts(steps: Any, ids: Tensor, past: dict[str, Tensor]) -> Tensor:
    """The same tokens in two calls, the second with the first one's present as its past."""
    cut = max(1, ids.shape[1] // 2)
    first = steps(ids=ids[:, :cut], **past)
    if cut == ids.shape[1]:
        return first["logits"]  # type: ignore[no-any-return]
    second = steps(ids=ids[:, cut:], **_as_past(first))
    return torch.cat((first["logits"], second["logits"]), 1)


def _with_cache(
    report: ParityReport, ours: Any, steps: Any, ids: Tensor, n_prompt: int, blocks: nn.ModuleList, config: TextConfig
) -> ParityReport:
    """Add logits, read at once and in two parts, and greedy text: ours, theirs with the cache, theirs without it."""
    past, empty = _named_past(blocks, len(ids)), _named_past(blocks, 1)
    in_two = _in_two_parts(steps, ids, past)
    report = with_logits(report, [(ours(ids), steps(ids=ids, **past)["logits"]), (ours(ids), in_two)])
    prompt = ids[:1, :n_prompt]
    n_tokens = min(_GREEDY_TOKENS, config.context_length - prompt.shape[1])
    mine, again = prompt, prompt
    for _ in range(n_tokens):
        mine = _longer(mine, ours(mine))
        again = _longer(again, steps(ids=again, **empty)["logits"])
    cached, answer = prompt, steps(ids=prompt, **empty)
    for _ in range(n_tokens):
        cached = _longer(cached, answer["logits"])
        answer = steps(ids=cached[:, -1:], **_as_past(answer)) if cached.shape[1] < config.context_length else answer
    start = prompt.shape[1]
    written, others = mine[0, start:].tolist(), (cached[0, start:].tolist(), again[0, start:].tolist())
    parted = [(n_tokens if place is None else place) for place in (first_difference(written, each) for each in others)]
    worst = others[parted.index(min(parted))]
    return with_greedy(report, written, worst)


def _longer(ids: Tensor, logits: Tensor) -> Tensor:
    return torch.cat((ids, logits[:, -1:].argmax(-1)), 1)


def _as_past(answer: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.replace("present", "past"): value for name, value in answer.items() if name != "logits"}


def _named_past(blocks: nn.ModuleList, batch: int) -> dict[str, Tensor]:
    return dict(zip(past_names(len(blocks)), empty_past(blocks, batch), strict=True))


def _rows(model: GPT | BERT | Seq2Seq, tokenizer: Tokenizer | None, lines: Sequence[str] | None) -> Tensor:
    """Rows of real text, (B, T); of any ids where the model came without a tokenizer."""
    length = min(model.config.context_length, 128)
    if tokenizer is None:
        return torch.randint(model.config.vocab_size, (_ROWS, length), generator=torch.Generator().manual_seed(0))
    text = built_in_lines() if lines is None else lines
    ids = [token for line in text if line for token in tokenizer.encode(line)]
    while len(ids) < _ROWS * length:
        ids += ids or [0]
    return torch.tensor(ids[: _ROWS * length]).view(_ROWS, length)
