"""Texts as vectors (text embeddings), by a model's own layers: the mean of one layer's states (mean pooling).

A model that was taught to predict words was never taught to compare texts, so which layer to take is a matter of
measuring (docs/dev/experiments.md): deeper layers know more of what comes next and less of what was said, and the table
of token embeddings itself, layer 0, told passages apart best. A text longer than the context is read in windows, and
all its tokens count the same.

Not done here: contrastive training, which sentence-transformers is for.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from kotha.errors import UsageError
from kotha.i18n.message import Message, OnProgress, Option
from kotha.model.bert import BERT
from kotha.model.evaluating import evaluating
from kotha.model.family import Model
from kotha.model.gpt import GPT
from kotha.retrieval.dense import Vectors, unit
from kotha.retrieval.sqlite_store import EmbedderNote
from kotha.storage.json_files import as_json
from kotha.text.tokenizer.tokenizer import Tokenizer

# Tokens that are read in one pass.
_BATCH_TOKENS = 4096
_SAMPLED = 64  # numbers of each weight that go into the fingerprint


class Embedder:
    """A model and its tokenizer as a maker of vectors; ``note`` says whose they are."""

    def __init__(self, model: Model, tokenizer: Tokenizer | None, name: str, layer: int = 0) -> None:
        if not isinstance(model, GPT | BERT) or tokenizer is None:
            raise UsageError(
                "{name} is a {family} model; embedding texts needs a GPT or a BERT",
                name=name,
                family=model.config.family,
            )
        if not 0 <= layer <= model.config.n_layers:
            raise UsageError(
                "{layer} is out of range: {name} has layers 1 to {n_layers}, and 0 is its token embedding",
                layer=Option("layer", layer),
                name=name,
                n_layers=model.config.n_layers,
            )
        self.model: GPT | BERT = model
        self.tokenizer, self.layer = tokenizer, layer
        self.note = EmbedderNote(f"{fingerprint(model, tokenizer)}-{layer}", name, model.config.d_model)

    def __call__(self, texts: Sequence[str], on_progress: OnProgress | None = None) -> Vectors:
        """Vectors of length 1, one a text: (texts, C); what has no token is a vector of zeros."""
        windows = [(row, window) for row, text in enumerate(texts) for window in self._windows(text)]
        sums = np.zeros((len(texts), self.note.width), np.float32)
        windows.sort(key=lambda pair: -len(pair[1]))  # alike in length, so that little is padding
        done = 0
        while done < len(windows):
            batch = windows[done : done + max(1, _BATCH_TOKENS // (1 + len(windows[done][1])))]
            for (row, _), total in zip(batch, self._sums([ids for _, ids in batch]), strict=True):
                sums[row] += total
            done += len(batch)
            if on_progress is not None:
                on_progress(Message("embedding"), done, len(windows))
        return unit(sums)

    def _windows(self, text: str) -> list[list[int]]:
        ids = self.tokenizer.encode(text)
        size = self.model.config.context_length - 1  # the token that begins a text stands before each
        return [ids[start : start + size] for start in range(0, len(ids), size)]

    @torch.inference_mode()
    def _sums(self, windows: list[list[int]]) -> Vectors:
        """The sum over each window's tokens of what the layer makes of them: (B, C)."""
        device, roles = self.model.tokens.weight.device, self.tokenizer.special
        start = next((roles[role] for role in ("cls", "eos", "bos") if role in roles), 0)
        tokens = torch.full((len(windows), 1 + max(map(len, windows))), start)  # (B, T)
        real = torch.zeros_like(tokens, dtype=torch.bool)
        for row, ids in enumerate(windows):
            tokens[row, 1 : 1 + len(ids)] = torch.tensor(ids)
            real[row, : 1 + len(ids)] = True
        tokens, real = tokens.to(device), real.to(device)
        states = self._states(tokens, real) if self.layer else self.model.tokens(tokens)  # (B, T, C)
        real[:, 0] = False  # what begins every text says nothing of this one
        sums: Vectors = (states.float() * real[:, :, None]).sum(dim=1).cpu().numpy()
        return sums

    def _states(self, tokens: Tensor, real: Tensor) -> Tensor:
        """What the layer's block gives: (B, T) -> (B, T, C)."""
        seen: list[Tensor] = []
        block = self.model.stack.blocks[self.layer - 1]
        handle = block.register_forward_hook(lambda _, __, states: seen.append(states))
        try:
            with evaluating(self.model):
                # What looks back alone never sees the padding behind it, and is faster unmasked.
                self.model.hidden(tokens, real=None if isinstance(self.model, GPT) else real)
        finally:
            handle.remove()
        return seen[0]


def fingerprint(model: Model, tokenizer: Tokenizer) -> str:
    """What tells two models apart: config, tokenizer, and numbers out of every weight."""
    told = hashlib.sha256(as_json(model.config.to_dict()).encode() + tokenizer.fingerprint.encode())
    for name, weight in model.named_parameters():
        flat = weight.detach().flatten()
        sampled = flat[:: max(1, len(flat) // _SAMPLED)].float().cpu().numpy()
        told.update(name.encode() + sampled.tobytes())
    return told.hexdigest()[:32]
