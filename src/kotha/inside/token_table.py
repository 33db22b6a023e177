"""Which rows of the token table one step of training touches.

Looking up a token sends a gradient back to its row alone. Where the head has a table of its own, rows of tokens that
are not in the batch stay as they are (but for weight decay). Where head and embedding share one table, the softmax
sends a gradient to every row: up to those that should have come, down to all that got some probability.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, linear

from kotha.errors import UsageError
from kotha.i18n.message import Message, Text
from kotha.model.evaluating import evaluating
from kotha.model.family import Model
from kotha.model.gpt import GPT
from kotha.report.table import Table


@dataclass(frozen=True)
class TouchedRows:
    """Rows that got a gradient, by the way it came."""

    vocab_size: int
    tied: bool
    tokens: int
    distinct: int  # different ones among them
    looked_up: int  # rows with a gradient from being read
    scored: int  # rows of the head's table with a gradient from the softmax
    token_table: int
    """Rows of the token table with any gradient: those looked up, and all that were scored if the head is tied."""
    looked_up_share: float
    """Of the length of the token table's gradient, the part that came from being read (of squares, in a tied table)."""

    def table(self) -> Table:
        """Which rows move, and why, to read."""
        ways = {
            Message("by being read (lookup)"): self.looked_up,
            Message("by being scored (softmax in the head)"): self.scored,
            Message("rows of the token table in all"): self.token_table,
        }
        rows: list[list[Text]] = [[way, f"{count:,}", f"{count / self.vocab_size:.2%}"] for way, count in ways.items()]
        title = Message(
            "rows with a gradient: {n:,} tokens read, {distinct:,} different ones",
            n=self.tokens,
            distinct=self.distinct,
        )
        why = Message("the head has a table of its own: rows of tokens that were not read stay as they are")
        if self.tied:
            why = Message(
                "the head uses the same table, so every row moves; {share:.1%} of the squared gradient came by reading",
                share=self.looked_up_share,
            )
        return Table(title, ["", Message("rows"), Message("of {n:,}", n=self.vocab_size)], rows, [why])


def touched_rows(model: Model, tokens: list[int]) -> TouchedRows:
    """One next-token step's gradient on a text, without a step: rows of the table that it reaches."""
    if not isinstance(model, GPT):
        raise UsageError(
            "rows are counted for one next-token step, which a {family} does not make", family=model.config.family
        )
    if len(tokens) < 2:
        raise UsageError("a text of {n} token(s) has nothing to foretell; give at least two words", n=len(tokens))
    read = torch.tensor(tokens[: model.config.context_length + 1])
    head = model.head.weight.detach().requires_grad_()  # apart from the table, even where they are one
    with evaluating(model), torch.enable_grad():  # dropout would hide rows by chance
        logits = linear(model.hidden(read[None, :-1])[0], head, model.head.bias)  # (T, V)
        loss = cross_entropy(logits.float(), read[1:])
        by_reading, by_scoring = torch.autograd.grad(loss, (model.tokens.weight, head))  # each (V, C)
    tied = model.head.weight is model.tokens.weight
    squares = [float(each.square().sum()) for each in (by_reading, by_scoring if tied else torch.zeros(()))]
    return TouchedRows(
        vocab_size=model.config.vocab_size,
        tied=tied,
        tokens=len(read) - 1,
        distinct=len(set(tokens[: len(read) - 1])),
        looked_up=_rows(by_reading),
        scored=_rows(by_scoring),
        token_table=_rows(by_reading + by_scoring if tied else by_reading),
        looked_up_share=squares[0] / max(sum(squares), 1e-30),
    )


def _rows(gradient: Tensor) -> int:
    return int((gradient != 0).any(dim=1).sum())
