"""The proof of a GGUF file: what real llama.cpp reads, computes and writes, beside the model that it was made from.

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kotha.errors import KothaError, reason
from kotha.export.gguf import llamacpp
from kotha.export.gguf.vocabulary import Vocabulary
from kotha.export.parity import ParityReport, logit_rows, prompt_reader
from kotha.i18n.message import Message
from kotha.model.gpt import GPT
from kotha.text.tokenizer.tokenizer import Tokenizer

# Best tokens that must be the same; eight bits turn some near draws, and at four bits it is told and not judged.
_LEAST_EQUAL = {"f32": 0.99, "f16": 0.99, "q8_0": 0.9}


@dataclass(frozen=True)
class Reply:
    """What llama.cpp said."""

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
    try:
        found = ask_llamacpp(path, lines=[*plain, *lines], windows=rows.tolist())
    except KothaError as error:
        report.refused = reason(error)
        return report
    theirs, read = dict(zip(plain, found.ids, strict=False)), prompt_reader(tokenizer)
    report.compare_lines(read, theirs.__getitem__, plain)
    assert found.logits is not None, "windows were asked for"
    report.compare_logits([(model(rows).flatten(0, 1), found.logits)])
    report.note(Message("llama.cpp keeps keys and values in float16"))
    if model.config.activation == "gelu":
        report.note(Message("its GELU is tanh's approximation, this model's the exact one"))
    if not vocabulary.normalizes:
        as_written = sum(read(line) != ids for line, ids in zip(lines, found.ids[len(lines) :], strict=True))
        report.note(
            Message(
                "llama.cpp does not normalize: {n:,} of {total:,} lines read otherwise there as they stand, so give it "
                "normalized text",
                n=as_written,
                total=len(lines),
            )
        )
    report.note(vocabulary.remark)
    return report
