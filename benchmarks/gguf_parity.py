"""Compare a model with its GGUF files in llama.cpp: token ids, most likely tokens and perplexity.

    python benchmarks/gguf_parity.py RUN TEXT [--kinds f16,q8_0] [--lines 1000] [--positions 1000] [--tokens 50000]

RUN is a run or model folder with a GPT, and TEXT a corpus (txt, jsonl, zst, ...) that the model was not trained on.
Token ids are compared on the same number of lines in each group: real lines unchanged, and the same lines decomposed,
with ya-phala and joiners, with digits, with English, and with emoji. Each line is passed to llama.cpp unchanged and
normalized, because llama.cpp does not normalize. Perplexity is computed over consecutive windows of the context length,
which are the same for both programs.
"""

import argparse
import copy
import math
import sys
import tempfile
import unicodedata
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).parent))

import record

from kotha.artifacts import model_folder as bundle
from kotha.export.gguf.export import KINDS, ask_llamacpp, write_file
from kotha.export.gguf.llamacpp import MOST_POSITIONS
from kotha.export.parity import logit_rows, prompt_reader
from kotha.model.gpt import GPT
from kotha.text.corpus.documents import read_documents
from kotha.text.tokenizer.tokenizer import Tokenizer

AIMS = {"ids_equal": 1.0, "best_equal_f16": 0.99, "perplexity_f16": 0.005, "perplexity_q8_0": 0.02}

# The changes to real lines; the i-th line gets the i-th variant.
GROUPS: dict[str, Callable[[str, int], str]] = {
    "as it stands": lambda line, i: line,
    "decomposed": lambda line, i: unicodedata.normalize("NFD", line),
    "precomposed nukta": lambda line, i: line.replace("\u09af\u09bc", "\u09df").replace("\u09a1\u09bc", "\u09dc"),
    "joiners": lambda line, i: _every_third_word(line, ("র\u200d্যাব", "র\u200c্যালি", "ক্\u200cষ", "ত্\u200d")[i % 4]),
    "digits": lambda line, i: _every_third_word(line, ("১২৩৪৫", "2026", "৩.১৪", "১০%", "1,00,000")[i % 5]),
    "english": lambda line, i: _every_third_word(line, ("Python", "don't", "GPU-based", "e-mail", "COVID-19")[i % 5]),
    "emoji": lambda line, i: _every_third_word(line, ("😀", "👨\u200d👩\u200d👧", "🇧🇩", "❤\ufe0f", "বাহ🎉")[i % 5]),
}


def _every_third_word(line: str, word: str) -> str:
    words = line.split(" ")
    return " ".join(each + (f" {word}" if place % 3 == 2 or len(words) < 3 else "") for place, each in enumerate(words))


def gelu_effect(model: GPT, windows: list[list[int]]) -> dict[str, float]:
    """Measure the effect of llama.cpp's GELU approximation, which is zero if the model uses the same approximation."""
    twin, exact = copy.deepcopy(model), logits_of(model, windows)
    for bend in twin.modules():
        if isinstance(bend, torch.nn.GELU):
            bend.approximate = "tanh"
    approximate = logits_of(twin, windows)
    same = (approximate.argmax(-1) == exact.argmax(-1)).float().mean()
    return {"largest": float((approximate - exact).abs().max()), "best_equal": float(same)}


def logits_of(model: GPT, windows: list[list[int]]) -> torch.Tensor:
    """Return Kotha's logits for all windows, concatenated: (positions, V)."""
    device = model.tokens.weight.device
    return torch.cat([model(torch.tensor([window], device=device))[0].float().cpu() for window in windows])


def group_lines(lines: list[str], count: int) -> dict[str, list[str]]:
    """Return the same number of lines for each group, ``count`` in total."""
    each = math.ceil(count / len(GROUPS))
    endless = cycle(lines)
    return {name: [change(line, i) for i, line in enumerate(islice(endless, each))] for name, change in GROUPS.items()}


def compare_ids(tokenizer: Tokenizer, file: Path, groups: dict[str, list[str]]) -> dict[str, Any]:
    """Count the lines in each group that give the same ids, unchanged and normalized, and decode to the same text."""
    found = {}
    for name, lines in groups.items():
        plain = [tokenizer.normalize(line) for line in lines]
        ours = list(map(prompt_reader(tokenizer), lines))
        theirs = ask_llamacpp(file, lines=[*lines, *plain], decode=ours)
        back = [tokenizer.decode(ids) for ids in ours]
        found[name] = {
            "lines": len(lines),
            "normalization_changes": sum(a != b for a, b in zip(lines, plain, strict=True)),
            "equal_normalized": sum(a == b for a, b in zip(ours, theirs.ids[len(lines) :], strict=True)),
            "equal_as_written": sum(a == b for a, b in zip(ours, theirs.ids[: len(lines)], strict=True)),
            "text_equal": sum(a == b for a, b in zip(back, theirs.text, strict=True)),
        }
    return found


def stretches(model: GPT, tokenizer: Tokenizer, texts: list[str], most: int) -> list[list[int]]:
    """Return the corpus as windows of the context length, with an end token before each document."""
    end = tokenizer.special["eos"]
    ids = [token for text in tokenizer.encode_batch(texts) for token in (end, *text)][:most]
    length = min(model.config.context_length, MOST_POSITIONS - 1)
    windows = [ids[start : start + length + 1] for start in range(0, len(ids) - 1, length)]
    return [window[: length + 1] for window in windows if len(window) > 1]


def their_logits(file: Path, windows: list[list[int]]) -> torch.Tensor:
    """Return the logits of llama.cpp for all windows, concatenated."""
    return ask_llamacpp(file, windows=windows).logits


def loss_of(logits: Callable[[list[list[int]]], torch.Tensor], windows: list[list[int]]) -> float:
    """Return nats per token over all windows."""
    total, count = 0.0, 0
    for start in range(0, len(windows), 32):
        some = windows[start : start + 32]
        scores = logits([window[:-1] for window in some]).double().log_softmax(-1)
        wanted = [token for window in some for token in window[1:]]
        total -= float(scores[torch.arange(len(wanted)), wanted].sum())
        count += len(wanted)
    return total / count


def compare_kind(
    model: GPT,
    tokenizer: Tokenizer,
    file: Path,
    kind: str,
    windows: list[list[int]],
    corpus: list[list[int]],
    loss: float,
) -> dict[str, Any]:
    """Compare the most likely tokens, logits and perplexity for one file."""
    _, wider = write_file(model, tokenizer, file, kind)
    ours = logits_of(model, windows)
    said = ask_llamacpp(file, windows=windows)
    theirs = loss_of(lambda some: their_logits(file, some), corpus)
    return {
        "bytes": file.stat().st_size,
        "kept_in_f16": wider,
        "positions": len(ours),
        "best_equal": float((ours.argmax(-1) == said.logits.argmax(-1)).double().mean()),
        "max_logit_difference": float((ours - said.logits).abs().max()),
        "perplexity": math.exp(theirs),
        "perplexity_change": math.exp(theirs - loss) - 1,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("run", type=Path)
    parser.add_argument("text")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--lines", type=int, default=1000, help="total number of lines whose tokens are compared")
    parser.add_argument("--positions", type=int, default=1000, help="positions whose top tokens are compared")
    parser.add_argument("--tokens", type=int, default=50_000, help="number of tokens for the perplexity")
    parser.add_argument("--name", default="gguf_parity", help="name of the results file")
    parser.add_argument("--out", type=Path, default=record.RESULTS, help="output folder")
    options = parser.parse_args()
    loaded = bundle.load(options.run)
    model, tokenizer = loaded.model, loaded.tokenizer
    assert isinstance(model, GPT), "only GPT models can be exported to GGUF"
    assert tokenizer is not None, "the model has no tokenizer"
    texts = [document.text for document in islice(read_documents([options.text]), 20_000)]
    lines = [line for text in texts for line in text.splitlines() if line.strip()]
    figures: dict[str, Any] = {"aims": AIMS, "config": model.config.to_dict(), "tokenizer": tokenizer.kind}
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        first = Path(folder) / "tokens.gguf"
        vocabulary, _ = write_file(model, tokenizer, first, "f16")
        figures["vocabulary"] = {name: vocabulary.fields[f"tokenizer_{name}"] for name in ("model", "pre")}
        figures["ids"] = compare_ids(tokenizer, first, group_lines(lines, options.lines))
        for name, row in figures["ids"].items():
            print(f"{name}: {row}", flush=True)
        length = min(model.config.context_length, MOST_POSITIONS)
        windows = logit_rows(model.config, tokenizer, lines, -(-options.positions // length), length).tolist()
        corpus = stretches(model, tokenizer, texts, options.tokens)
        loss = loss_of(lambda some: logits_of(model, some), corpus)
        figures["tokens"], figures["our_perplexity"] = sum(len(window) - 1 for window in corpus), math.exp(loss)
        figures["gelu"] = gelu_effect(model, windows)
        for kind in options.kinds.split(","):
            file = Path(folder) / f"{kind}.gguf"
            figures[kind] = compare_kind(model, tokenizer, file, kind, windows, corpus, loss)
            print(f"{kind}: {figures[kind]}", flush=True)
            file.unlink()
    record.save(options.name, figures, ["torch", "gguf", "xllamacpp"], options.out)


if __name__ == "__main__":
    main()
