"""Text embeddings from a language model: the mean of one layer's states (mean pooling).

A model trained to predict words is not trained to compare texts, so the best layer has to be found by measurement.
Deeper layers represent the next token more than the text so far; the token embedding, layer 0, distinguished passages
best (docs/dev/experiments.md). A text longer than the context is embedded in windows, and all its tokens have the same
weight.

The model is not trained contrastively; for embeddings trained that way, use sentence-transformers.
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

# Tokens per forward pass.
_BATCH_TOKENS = 4096
_SAMPLED = 64  # number of values from each weight that are included in the fingerprint


class Embedder:
    """Embeds texts with a model and its tokenizer; ``note`` identifies the model."""

    def __init__(self, model: Model, tokenizer: Tokenizer | None, name: str, layer: int = 0) -> None:
        if not isinstance(model, GPT | BERT) or tokenizer is None:
            raise UsageError(
                "{name} is a {family} model; text embeddings require a GPT or a BERT",
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
        """Return one unit vector per text: (texts, C); zeros for a text without tokens."""
        windows = [(row, window) for row, text in enumerate(texts) for window in self._windows(text)]
        sums = np.zeros((len(texts), self.note.width), np.float32)
        windows.sort(key=lambda pair: -len(pair[1]))  # similar lengths together, to reduce padding
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
        size = self.model.config.context_length - 1  # each window starts with the start token
        return [ids[start : start + size] for start in range(0, len(ids), size)]

    @torch.inference_mode()
    def _sums(self, windows: list[list[int]]) -> Vectors:
        """Return the sum of the layer's states over each window's tokens: (B, C)."""
        device, roles = self.model.tokens.weight.device, self.tokenizer.special
        start = next((roles[role] for role in ("cls", "eos", "bos") if role in roles), 0)
        tokens = torch.full((len(windows), 1 + max(map(len, windows))), start)  # (B, T)
        real = torch.zeros_like(tokens, dtype=torch.bool)
        for row, ids in enumerate(windows):
            tokens[row, 1 : 1 + len(ids)] = torch.tensor(ids)
            real[row, : 1 + len(ids)] = True
        tokens, real = tokens.to(device), real.to(device)
        states = self._states(tokens, real) if self.layer else self.model.tokens(tokens)  # (B, T, C)
        real[:, 0] = False  # the start token is the same for every text
        sums: Vectors = (states.float() * real[:, :, None]).sum(dim=1).cpu().numpy()
        return sums

    def _states(self, tokens: Tensor, real: Tensor) -> Tensor:
        """Return the output of the layer's block: (B, T) -> (B, T, C)."""
        seen: list[Tensor] = []
        block = self.model.stack.blocks[self.layer - 1]
        handle = block.register_forward_hook(lambda _, __, states: seen.append(states))
        try:
            with evaluating(self.model):
                # Causal attention ignores padding on the right, and is faster unmasked.
                self.model.hidden(tokens, real=None if isinstance(self.model, GPT) else real)
        finally:
            handle.remove()
        return seen[0]


def fingerprint(model: Model, tokenizer: Tokenizer) -> str:
    """Return a hash that identifies a model, computed from its config, its tokenizer and values from every weight."""
    digest = hashlib.sha256(as_json(model.config.to_dict()).encode() + tokenizer.fingerprint.encode())
    for name, weight in model.named_parameters():
        flat = weight.detach().flatten()
        sampled = flat[:: max(1, len(flat) // _SAMPLED)].float().cpu().numpy()
        digest.update(name.encode() + sampled.tobytes())
    return digest.hexdigest()[:32]
