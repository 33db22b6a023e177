"""The proof of a GGUF file: what real llama.cpp reads, computes and writes, beside the model that it was made from.

Three kinds of difference are known and named in the report. llama.cpp keeps keys and values in float16, so even f32
weights give logits that are a little off; what counts is whether the best token is the same. Its gpt2 computes GELU by
tanh's approximation, whatever the model was trained with. And with a BPE it does not normalize: tokens are then
compared on normalized lines, and the report counts the lines that would have read otherwise as they stand.
"""

import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kotha.errors import KothaError, reason
from kotha.export.gguf import llamacpp
from kotha.export.gguf.vocabulary import Vocabulary
from kotha.export.parity import ParityReport, not_checked, prompt_reader, with_lines, with_logits, with_remarks
from kotha.i18n.message import Message, Text
from kotha.model.gpt import GPT
from kotha.text.tokenizer.tokenizer import Tokenizer

# Best tokens that must be the same; eight bits turn some near draws, and at four bits it is told and not judged.
_LEAST_EQUAL = {"f32": 0.99, "f16": 0.99, "q8_0": 0.9}
_POSITIONS = 512


@dataclass(frozen=True)
class Reply:
    """What llama.cpp said."""

    peer: str
    ids: list[list[int]]
    text: list[str]
    logits: Tensor | None


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
                "llama.cpp gave up on {path}: {why}",
                path=model,
                why="; ".join(said[-3:]) or f"exit {done.returncode}",
            )
        found = json.loads((folder / llamacpp.ANSWER).read_text(encoding="utf-8"))
        logits = torch.from_numpy(np.load(folder / llamacpp.LOGITS)) if asked.get("windows") else None
    return Reply(**found, logits=logits)


def check_file(
    model: GPT, tokenizer: Tokenizer, path: Path, kind: str, vocabulary: Vocabulary, lines: Sequence[str]
) -> ParityReport:
    """Compare a file in llama.cpp with the model that it was written from."""
    if importlib.util.find_spec("xllamacpp") is None:
        return not_checked("gguf", "xllamacpp")
    report = ParityReport("gguf", tolerance=None, least_best_equal=_LEAST_EQUAL.get(kind))
    plain = lines if vocabulary.normalizes else [tokenizer.normalize(line) for line in lines]
    windows = windows_of(model, tokenizer, lines)
    try:
        found = ask_llamacpp(path, lines=[*plain, *lines], windows=windows)
    except KothaError as error:
        return replace(report, refused=reason(error))
    theirs, read = dict(zip(plain, found.ids, strict=False)), prompt_reader(tokenizer)
    report = with_lines(replace(report, peer=found.peer), read, lambda line: theirs[line], plain)
    if found.logits is not None:
        with torch.inference_mode():
            report = with_logits(report, [(logits_of(model, windows), found.logits)])
    remarks: list[Text] = [Message("llama.cpp keeps keys and values in float16")]
    if model.config.activation == "gelu":
        remarks.append(Message("its GELU is tanh's approximation, this model's the exact one"))
    if not vocabulary.normalizes:
        as_written = sum(read(line) != ids for line, ids in zip(lines, found.ids[len(lines) :], strict=True))
        remarks.append(
            Message(
                "llama.cpp does not normalize: {n:,} of {total:,} lines read otherwise there as they stand, so give it "
                "normalized text",
                n=as_written,
                total=len(lines),
            )
        )
    return with_remarks(report, *remarks, vocabulary.remark)


def windows_of(model: GPT, tokenizer: Tokenizer, lines: Sequence[str], positions: int = _POSITIONS) -> list[list[int]]:
    """Stretches of real text to read, as long as both sides allow."""
    ids = [token for line in lines if line for token in tokenizer.encode(line)][:positions]
    length = min(model.config.context_length, llamacpp.MOST_POSITIONS)
    return [ids[start : start + length] for start in range(0, len(ids), length)]


def logits_of(model: GPT, windows: Sequence[Sequence[int]]) -> Tensor:
    """Our logits of all windows, one after the other: (positions, V)."""
    device = model.tokens.weight.device
    return torch.cat([model(torch.tensor([list(window)], device=device))[0].float().cpu() for window in windows])
