"""The state of a batch on the device: a row for each request, all of it in tensors that keep their place.

A step reads each row's pending token, draws the next and writes it back; nothing of that needs the host, so that a GPU
can do several steps before anyone looks, and one recording of a step serves all of them. The numbers that the draws
fall by are handed over a few steps at a time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kotha.errors import KothaError
from kotha.generation.plain import NO_NUMBERS
from kotha.generation.request import MOST_ALTERNATIVES, Answer, Seen
from kotha.generation.sampling import Knobs, draw, knobs_of, penalize

_BROKEN = -1  # in ``drawn``: the scores were no numbers


@dataclass(frozen=True)
class Plan:
    """What a step must do for the rows at hand; a recorded step serves one plan."""

    n_rows: int  # rows that are computed
    span: int  # cached positions that are looked at
    width: int  # places of the ranking that some row needs; see ``sampling.draw``
    greedy: bool  # whether some row always takes the best token
    penalty: bool  # whether some row has a repetition penalty
    alternatives: int | None  # how many likely tokens are told; None: no probabilities at all
    even: int | None = None  # how much every row has read, where that is one number and this plan is for one step alone


class Rows:
    """Pending tokens, settings and draws of each row."""

    def __init__(
        self, max_rows: int, vocab_size: int, block: int, device: torch.device, ends: frozenset[int] = frozenset()
    ) -> None:
        self.vocab_size, self.block, self.device = vocab_size, block, device
        self._ends = ends  # they end a text, and are no repetition in it
        self.knobs = torch.zeros(len(Knobs._fields), max_rows, device=device)
        self.pending = torch.zeros(max_rows, dtype=torch.long, device=device)
        self.numbers = torch.zeros(max_rows, block, device=device)
        self.drawn = torch.zeros(max_rows, block, dtype=torch.long, device=device)
        self.slot = torch.zeros(1, dtype=torch.long, device=device)  # which step of the block comes next
        pinned = device.type == "cuda"
        self._staging = [torch.zeros(max_rows, block, pin_memory=pinned) for _ in range(2)]
        # (R, V), True: the row's text has the token. Made when a request first needs it: it is large.
        self.seen: Tensor | None = None
        # (R, block, 1 + alternatives), ids and log-probabilities of what was drawn and of the likeliest; and
        # (R, block, 1), the rank of what was drawn and the probability of all above it
        self.told: tuple[Tensor, Tensor, Tensor, Tensor] | None = None

    def plan(self, answers: Sequence[Answer], n_rows: int, span: int, even: int | None = None) -> Plan:
        """What these answers ask of a step."""
        requests = [answer.request for answer in answers]
        settings = [request.settings for request in requests]
        wanted = [request.alternatives for request in requests if request.alternatives is not None]
        drawing = [each for each in settings if not each.greedy]
        return Plan(
            n_rows=n_rows,
            span=span,
            width=max((min(each.top_k or self.vocab_size, self.vocab_size) for each in drawing), default=1),
            greedy=len(drawing) < len(settings),
            penalty=any(each.repetition_penalty is not None for each in settings),
            alternatives=min(max(wanted), self.vocab_size) if wanted else None,
            even=even,
        )

    def put(self, first: int, answers: Sequence[Answer]) -> None:
        """Give rows to answers, from the first on."""
        settings, new = [answer.request.settings for answer in answers], slice(first, first + len(answers))
        self.knobs[:, new] = knobs_of(settings, self.vocab_size).to(self.device)
        self.pending[new] = torch.tensor([answer.last for answer in answers], device=self.device)
        if self.seen is None and any(each.repetition_penalty is not None for each in settings):
            self.seen = torch.zeros(len(self.pending), self.vocab_size, dtype=torch.bool, device=self.device)
        if self.seen is not None:
            for row, answer in enumerate(answers, first):
                said = [token for token in (*answer.start, *answer.ids) if token not in self._ends]
                self.seen[row] = False
                self.seen[row, torch.tensor(said, dtype=torch.long, device=self.device)] = True

    def move(self, source: int, target: int) -> None:
        """Copy a row over another; what is handed over for each block is not copied."""
        self.knobs[:, target] = self.knobs[:, source]
        self.pending[target] = self.pending[source]
        if self.seen is not None:
            self.seen[target] = self.seen[source]

    def load(self, answers: Sequence[Answer], count: int, plan: Plan) -> None:
        """Hand over what the next steps need, without waiting for the steps before them."""
        n_rows = len(answers)
        self._staging.reverse()
        coming = self._staging[0]  # the one that the last copy but one has long left
        view = coming.numpy()
        for row, answer in enumerate(answers):
            some = answer.numbers[answer.asked : answer.asked + count]
            view[row, : len(some)] = some  # a row that needs fewer draws the rest by old numbers; nobody looks
        self.numbers[:n_rows].copy_(coming[:n_rows], non_blocking=True)
        if plan.alternatives is not None and self.told is None:
            # As wide as it can get, for good: recorded steps point here.
            shape = (*self.drawn.shape, 1 + min(MOST_ALTERNATIVES, self.vocab_size))
            ids = torch.zeros(shape, dtype=torch.long, device=self.device)
            chances = torch.zeros(shape, device=self.device)
            self.told = ids, chances, torch.zeros_like(ids[..., :1]), torch.zeros_like(chances[..., :1])
        self.slot.zero_()

    def take(self, logits: Tensor, plan: Plan) -> None:
        """Draw the next token of each row: (B, V)."""
        n = plan.n_rows
        knobs = Knobs(*self.knobs[:, :n])
        seen = self.seen[:n] if plan.penalty and self.seen is not None else None
        scores = logits if seen is None else penalize(logits, knobs, seen)
        number = self.numbers[:n].index_select(1, self.slot)[:, 0]
        tokens = draw(scores, knobs, number, plan.width, plan.greedy)[:, None]  # (B, 1)
        self.pending[:n].copy_(tokens[:, 0])
        numbers = logits.amax(dim=-1, keepdim=True).isfinite()  # nothing can be drawn from what is none
        self.drawn[:n].index_copy_(1, self.slot, torch.where(numbers, tokens, _BROKEN))
        if seen is not None:
            seen.scatter_(1, tokens, True)
        if plan.alternatives is not None:
            self._note(logits, tokens, plan.alternatives)
        self.slot.add_(1)

    def catch(self, answers: Sequence[Answer], count: int, plan: Plan) -> "Flight":
        """What these steps draw, on its way to the host; later steps may write over it here."""
        n, kept = len(answers), [self.drawn[: len(answers), :count]]
        if plan.alternatives is not None and self.told is not None:
            kept += [tensor[:n, :count, : 1 + plan.alternatives] for tensor in self.told]
        return Flight(answers, kept)

    def _note(self, logits: Tensor, tokens: Tensor, count: int) -> None:
        """Keep the probabilities that the model itself gave."""
        assert self.told is not None, "no room was made for probabilities"
        chances = logits.log_softmax(dim=-1)
        ids = torch.cat([tokens, chances.topk(count, dim=-1).indices], dim=1)  # (B, 1 + count)
        likelier = chances > chances.gather(1, tokens)  # (B, V)
        rank = likelier.sum(dim=-1, keepdim=True) + 1
        above = (chances.exp() * likelier).sum(dim=-1, keepdim=True)
        for kept, new in zip(self.told, (ids, chances.gather(1, ids), rank, above), strict=True):
            kept[: len(ids), :, : new.shape[1]].index_copy_(1, self.slot, new[:, None])


class Flight:
    """Steps under way: for whom, and what they draw, copied to the host while the device goes on.

    Rows may change hands before it is read.
    """

    def __init__(self, answers: Sequence[Answer], tensors: Sequence[Tensor]) -> None:
        self._answers = list(answers)
        self._tensors = [tensor.to("cpu", non_blocking=True, copy=True) for tensor in tensors]
        self._arrived = torch.cuda.Event() if tensors[0].is_cuda else None  # type: ignore[no-untyped-call]
        if self._arrived is not None:
            self._arrived.record()

    def land(self) -> Iterable[tuple[Answer, list[int], list[Seen]]]:
        """Each answer's tokens, when they have come, and their probabilities; none where nobody asked."""
        if self._arrived is not None:
            self._arrived.synchronize()
        tokens, *told = (tensor.tolist() for tensor in self._tensors)
        if any(_BROKEN in row for row in tokens):
            raise KothaError(NO_NUMBERS)
        seen = [list(zip(*row, strict=True)) for row in zip(*told, strict=True)]
        return zip(self._answers, tokens, seen or [[]] * len(tokens), strict=True)
