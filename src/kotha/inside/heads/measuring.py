"""What `heads` and `prune` measure on: a text as passages to look at and batches with a loss.

A GPT guesses each token from those before it, a BERT hidden words, a Seq2Seq each token of a translation. Passages are
as long as the context allows, and each is a batch of its own, so that all count alike.
"""

import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kotha.errors import UsageError

if TYPE_CHECKING:
    from kotha.bundle import Bundle
    from kotha.evaluate.held_out import HeldOut
    from kotha.inside.heads.sight import Passage
    from kotha.text.tokenizer.tokenizer import Tokenizer

# Longer ones cost a square in time and show nothing more of a head.
_LONGEST, _FEWEST = 256, 9


@dataclass(frozen=True)
class Material:
    """A model, and what it is measured on."""

    opened: "Bundle"
    tokenizer: "Tokenizer"
    text: str
    """Where the text comes from."""
    counts: list[int]
    """How often each token occurs in all of it, also in what is not measured on."""
    passages: list["Passage"]
    batches: list[dict[str, Any]]
    loss: Callable[[Any, dict[str, Any]], Any]

    @property
    def rare(self) -> list[int]:
        """The rarest tokens of the whole text."""
        from kotha.inside.heads.kinds import rarest

        return sorted(rarest(self.counts, besides=self.tokenizer.special.values()))

    @property
    def punctuation(self) -> list[int]:
        """Tokens that are stops, dandas, commas and the like, and nothing else."""
        texts = ((token, self.tokenizer.decode([token]).strip()) for token in range(self.tokenizer.vocab_size))
        return [t for t, text in texts if text and all(unicodedata.category(letter)[0] == "P" for letter in text)]

    @property
    def ordinary(self) -> list[int]:
        """Tokens that stand for text."""
        special = set(self.tokenizer.special.values())
        return [token for token in range(self.tokenizer.vocab_size) if token not in special]


def gather(
    run: Path, path: str | None, text: str | None, field: str, pair: tuple[str, str] | None, tokens: int
) -> Material:
    """Open a model, and make passages and batches of a text; left out, of the run's own held-out documents."""
    from kotha import bundle

    if path is not None and text is not None:
        raise UsageError("a PATH and --text are two texts; give one of them")
    if tokens < _FEWEST:
        raise UsageError(f"--tokens {tokens} shows nothing; use {_FEWEST} or more")
    if path is not None:
        _refuse_text(path)
    opened = bundle.load(run).widened()
    if opened.tokenizer is None:
        raise UsageError(f"{run} holds a {opened.config.family} model, which reads no text; heads are measured on text")
    if opened.config.family == "seq2seq":
        return _pairs(opened, opened.tokenizer, path, pair, tokens)
    if pair is not None:
        raise UsageError(f"--pair is for a model that translates, and {run} holds a {opened.config.family}")
    return _lines(opened, opened.tokenizer, run, path, text, field, tokens)


def _refuse_text(path: str) -> None:
    """Refuse what cannot be a file's name: most likely a text that lost its flag."""
    from kotha.text.akshara import aksharas

    try:
        Path(path).exists()
    except (OSError, ValueError) as error:
        start = "".join(aksharas(path)[:20])
        raise UsageError(f"“{start} …” is no file name; a text itself goes after --text") from error


def _lines(
    opened: "Bundle", tokenizer: "Tokenizer", run: Path, path: str | None, text: str | None, field: str, most: int
) -> Material:
    from kotha.evaluate.held_out import from_texts, read_held_out

    if text is not None:
        held_out = from_texts([text], tokenizer, "--text")
    else:
        held_out = read_held_out(_held_out(run) if path is None else path, tokenizer, field=field)
    line = held_out.line[:most]
    if len(line) < _FEWEST:
        raise UsageError(f"{held_out.name} has {len(line)} tokens; {_FEWEST} are the least that shows something")
    make = _masked if opened.config.family == "bert" else _next_tokens
    return make(opened, tokenizer, held_out, line)


def _held_out(run: Path) -> Path:
    from kotha.evaluate.baselines import find_data
    from kotha.runs import run_config

    data = find_data(run_config(run), run)
    if data is None:
        raise UsageError(f'{run} knows no data that is still there; give a text: a PATH, or --text "…"')
    return data


def _counts(line: Any) -> list[int]:
    import numpy as np

    counts: list[int] = np.bincount(line).tolist()
    return counts


def _windows(line: Any, length: int) -> Iterator[Any]:
    """A line in stretches of one length; what is left over is not read, unless it is all."""
    import torch

    length = min(length, len(line))
    return (torch.from_numpy(line[start : start + length]) for start in range(0, len(line) - length + 1, length))


def _next_tokens(opened: "Bundle", tokenizer: "Tokenizer", text: "HeldOut", line: Any) -> Material:
    from kotha.inside.heads.sight import Passage
    from kotha.train.objectives import next_token

    windows = list(_windows(line, min(opened.config.context_length, _LONGEST) + 1))  # type: ignore[attr-defined]
    passages = [Passage(window[:-1]) for window in windows]
    batches = [{"sequences": window[None]} for window in windows]
    return Material(
        opened,
        tokenizer,
        text.name,
        _counts(text.line),
        passages,
        batches,
        lambda model, batch: next_token(model, **batch),
    )


def _masked(opened: "Bundle", tokenizer: "Tokenizer", text: "HeldOut", line: Any) -> Material:
    import numpy as np
    import torch

    from kotha.inside.heads.sight import Passage
    from kotha.train.objectives import masked_words
    from kotha.train.tasks.masking import Masking

    masking, chance = Masking(tokenizer), np.random.default_rng(0)
    ends = torch.tensor([masking.cls]), torch.tensor([masking.sep])
    passages, batches = [], []
    for window in _windows(line, min(opened.config.context_length, _LONGEST) - 2):  # type: ignore[attr-defined]
        tokens = torch.cat((ends[0], window, ends[1]))
        passages.append(Passage(tokens))
        batches.append(
            {key: torch.from_numpy(each)[None] for key, each in masking.hide(tokens.numpy(), chance)._asdict().items()}
        )

    def loss(model: Any, batch: dict[str, Any]) -> Any:
        return masked_words(model, model.hidden(batch["tokens"]), batch["places"], batch["words"])

    return Material(opened, tokenizer, text.name, _counts(text.line), passages, batches, loss)


def _pairs(
    opened: "Bundle", tokenizer: "Tokenizer", path: str | None, pair: tuple[str, str] | None, most: int
) -> Material:
    import torch

    from kotha.inside.heads.sight import Passage
    from kotha.text.corpus.documents import read_pairs
    from kotha.train.objectives import teacher_forcing

    if path is None or pair is None:
        raise UsageError("a model that translates is measured on pairs; give a PATH and their fields: --pair en bn")
    start, end = tokenizer.special["bos"], tokenizer.special["eos"]
    passages: list[Passage] = []
    batches: list[dict[str, Any]] = []
    for each in read_pairs([path], source_field=pair[0], target_field=pair[1]):
        source, target = [*tokenizer.encode(each.source_text), end], [start, *tokenizer.encode(each.target_text), end]
        if max(len(source), len(target) - 1) > opened.config.context_length:  # type: ignore[attr-defined]
            continue
        if most < 0:
            break
        most -= len(source) + len(target)
        passages.append(Passage(torch.tensor(target[:-1]), torch.tensor(source)))
        batches.append({"source": torch.tensor([source]), "target": torch.tensor([target])})
    if not batches:
        raise UsageError(f"{path} has no pair that fits the model's context of {opened.config.context_length}")  # type: ignore[attr-defined]
    sources = torch.cat([each.source for each in passages if each.source is not None])
    return Material(
        opened,
        tokenizer,
        path,
        _counts(sources.numpy()),
        passages,
        batches,
        lambda model, batch: teacher_forcing(model, **batch),
    )
