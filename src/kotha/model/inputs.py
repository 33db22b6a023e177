"""Validation of model inputs.

An index out of range raises an obscure error on a CPU and aborts the process on a GPU. Lengths are always checked.
Values are checked only in eager mode, not in compiled, exported, traced or recorded code.
"""

import torch
from torch import Tensor

from kotha.errors import UsageError
from kotha.i18n.message import Message, Text
from kotha.model.cache_interface import Cache
from kotha.model.config import TextConfig


def check_ids(ids: Tensor, n_known: int, what: Text | None = None, table: Text | None = None) -> None:
    """Raise an error for an id that is out of range."""
    if not _values_can_be_read(ids) or ids.numel() == 0:
        return
    lowest, highest = (int(value) for value in torch.aminmax(ids))
    if lowest < 0 or highest >= n_known:
        wrong = lowest if lowest < 0 else highest
        raise UsageError(
            "{what} {wrong} is out of range: {table} has {n:,} entries, 0 to {last:,}; was the text encoded "
            "with another tokenizer?",
            what=what or Message("token id"),
            wrong=wrong,
            table=table or Message("the vocabulary"),
            n=n_known,
            last=n_known - 1,
        )


def _check_length(n_positions: int, context_length: int) -> None:
    if n_positions > context_length:
        raise UsageError(
            "{n:,} tokens exceed context_length={context_length:,}; pass the last {context_length:,}, or "
            "train with a longer context",
            n=n_positions,
            context_length=context_length,
        )


def positions_of(tokens: Tensor, config: TextConfig, cache: Cache | None = None) -> Tensor:
    """Check token ids and lengths; return the positions that follow the cached ones: (B, T) -> (T,) or (B, T)."""
    check_ids(tokens, config.vocab_size)
    n_new = tokens.shape[1]
    _check_length(n_new, config.context_length)
    if cache is None:
        return torch.arange(n_new, device=tokens.device)
    positions = cache.positions(n_new)
    if _values_can_be_read(positions) and positions.numel():
        _check_length(int(positions.max()) + 1, config.context_length)
    return positions


def _values_can_be_read(tensor: Tensor) -> bool:
    tracing: bool = torch.jit.is_tracing()  # type: ignore[attr-defined,no-untyped-call]
    if torch.compiler.is_compiling() or tracing or tensor.is_meta:
        return False
    return not (tensor.is_cuda and torch.cuda.is_current_stream_capturing())
