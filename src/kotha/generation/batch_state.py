"""The state of a batch on the device: tensors at fixed addresses, with one row per request.

A step reads each row's pending token, samples the next one and stores it on the device, without the host. A GPU can
therefore replay one recorded graph for several consecutive steps. The uniform random numbers for sampling are copied to
the device for a few steps at a time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from kotha.errors import NotFiniteError
from kotha.generation.request import MOST_ALTERNATIVES, Answer, Seen
from kotha.generation.sampling import SamplerParameters, draw, penalize, sampler_parameters

_NOT_FINITE = -1  # marks NaN or infinite logits in ``drawn``


@dataclass(frozen=True)
class Plan:
    """The parameters of a step for the current rows; each recorded graph belongs to one plan."""

    n_rows: int  # rows to compute
    span: int  # cached positions that attention covers
    width: int  # largest number of ranked tokens that a row needs; see ``sampling.draw``
    greedy: bool  # whether any row is greedy
    penalty: bool  # whether any row has a repetition penalty
    alternatives: int | None  # number of most likely tokens to report; None: no probabilities
    even: int | None = None  # tokens in every row's cache, if equal for all rows and the plan is for a single step


class Rows:
    """The pending token, settings and sampled tokens of each row."""

    def __init__(
        self, max_rows: int, vocab_size: int, block: int, device: torch.device, ends: frozenset[int] = frozenset()
    ) -> None:
        self.vocab_size, self.block, self.device = vocab_size, block, device
        self._ends = ends  # end tokens, exempt from the repetition penalty
        self.knobs = torch.zeros(len(SamplerParameters._fields), max_rows, device=device)
        self.pending = torch.zeros(max_rows, dtype=torch.long, device=device)
        self.numbers = torch.zeros(max_rows, block, device=device)
        self.drawn = torch.zeros(max_rows, block, dtype=torch.long, device=device)
        self.slot = torch.zeros(1, dtype=torch.long, device=device)  # index of the next step in the current block
        pinned = device.type == "cuda"
        self._staging = [torch.zeros(max_rows, block, pin_memory=pinned) for _ in range(2)]
        # (R, V), True if the token occurs in the row's text. Created on first use, because it is large.
        self.seen: Tensor | None = None
        # (R, block, 1 + alternatives): ids and log-probabilities of the sampled token and the most likely ones, and
        # tensors (R, block, 1): the rank of the sampled token and the total probability of more likely ones
        self.reported: tuple[Tensor, Tensor, Tensor, Tensor] | None = None

    def plan(self, answers: Sequence[Answer], n_rows: int, span: int, even: int | None = None) -> Plan:
        """Return the plan for a step with these answers."""
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
        """Assign rows to answers, starting at ``first``."""
        settings, new = [answer.request.settings for answer in answers], slice(first, first + len(answers))
        self.knobs[:, new] = sampler_parameters(settings, self.vocab_size).to(self.device)
        self.pending[new] = torch.tensor([answer.last for answer in answers], device=self.device)
        if self.seen is None and any(each.repetition_penalty is not None for each in settings):
            self.seen = torch.zeros(len(self.pending), self.vocab_size, dtype=torch.bool, device=self.device)
        if self.seen is not None:
            for row, answer in enumerate(answers, first):
                present = [token for token in (*answer.start, *answer.ids) if token not in self._ends]
                self.seen[row] = False
                self.seen[row, torch.tensor(present, dtype=torch.long, device=self.device)] = True

    def move(self, source: int, target: int) -> None:
        """Copy one row over another, except for the random numbers of the current block."""
        self.knobs[:, target] = self.knobs[:, source]
        self.pending[target] = self.pending[source]
        if self.seen is not None:
            self.seen[target] = self.seen[source]

    def load(self, answers: Sequence[Answer], count: int, plan: Plan) -> None:
        """Copy the random numbers and settings of the next steps to the device, without waiting for earlier steps."""
        n_rows = len(answers)
        self._staging.reverse()
        buffer = self._staging[0]  # free, because its last copy, two blocks ago, has finished
        view = buffer.numpy()
        for row, answer in enumerate(answers):
            view[row, :count] = list(islice(answer.numbers, count))
        self.numbers[:n_rows].copy_(buffer[:n_rows], non_blocking=True)
        if plan.alternatives is not None and self.reported is None:
            # Allocated once at its largest size, because recorded graphs hold its address.
            shape = (*self.drawn.shape, 1 + min(MOST_ALTERNATIVES, self.vocab_size))
            ids = torch.zeros(shape, dtype=torch.long, device=self.device)
            chances = torch.zeros(shape, device=self.device)
            self.reported = ids, chances, torch.zeros_like(ids[..., :1]), torch.zeros_like(chances[..., :1])
        self.slot.zero_()

    def take(self, logits: Tensor, plan: Plan) -> None:
        """Sample the next token of each row from logits (B, V)."""
        n = plan.n_rows
        knobs = SamplerParameters(*self.knobs[:, :n])
        seen = self.seen[:n] if plan.penalty and self.seen is not None else None
        scores = logits if seen is None else penalize(logits, knobs, seen)
        number = self.numbers[:n].index_select(1, self.slot)[:, 0]
        tokens = draw(scores, knobs, number, plan.width, plan.greedy)[:, None]  # (B, 1)
        self.pending[:n].copy_(tokens[:, 0])
        finite = logits.amax(dim=-1, keepdim=True).isfinite()
        self.drawn[:n].index_copy_(1, self.slot, torch.where(finite, tokens, _NOT_FINITE))
        if seen is not None:
            seen.scatter_(1, tokens, True)
        if plan.alternatives is not None:
            self._note(logits, tokens, plan.alternatives)
        self.slot.add_(1)

    def copy_to_host(self, answers: Sequence[Answer], count: int, plan: Plan) -> "PendingSteps":
        """Start copying the results of these steps to the host; later steps may then overwrite them on the device."""
        n, kept = len(answers), [self.drawn[: len(answers), :count]]
        if plan.alternatives is not None and self.reported is not None:
            kept += [tensor[:n, :count, : 1 + plan.alternatives] for tensor in self.reported]
        return PendingSteps(answers, kept)

    def _note(self, logits: Tensor, tokens: Tensor, count: int) -> None:
        """Store the probabilities of the model, before any sampling setting is applied."""
        assert self.reported is not None, "the buffers for probabilities are allocated by load()"
        chances = logits.log_softmax(dim=-1)
        ids = torch.cat([tokens, chances.topk(count, dim=-1).indices], dim=1)  # (B, 1 + count)
        likelier = chances > chances.gather(1, tokens)  # (B, V)
        rank = likelier.sum(dim=-1, keepdim=True) + 1
        above = (chances.exp() * likelier).sum(dim=-1, keepdim=True)
        for kept, new in zip(self.reported, (ids, chances.gather(1, ids), rank, above), strict=True):
            kept[: len(ids), :, : new.shape[1]].index_copy_(1, self.slot, new[:, None])


class PendingSteps:
    """Steps in progress, their answers, and their results, which are copied to the host while the device continues.

    Rows may be reassigned before the results are read.
    """

    def __init__(self, answers: Sequence[Answer], tensors: Sequence[Tensor]) -> None:
        self._answers = list(answers)
        self._tensors = [tensor.to("cpu", non_blocking=True, copy=True) for tensor in tensors]
        self._copied = torch.cuda.Event() if tensors[0].is_cuda else None  # type: ignore[no-untyped-call]
        if self._copied is not None:
            self._copied.record()

    def wait(self) -> Iterable[tuple[Answer, list[int], list[Seen]]]:
        """Wait for the copy; yield each answer with its tokens and their probabilities (empty if not requested)."""
        if self._copied is not None:
            self._copied.synchronize()
        tokens, *reported = (tensor.tolist() for tensor in self._tensors)
        if any(_NOT_FINITE in row for row in tokens):
            raise NotFiniteError
        seen = [list(zip(*row, strict=True)) for row in zip(*reported, strict=True)]
        return zip(self._answers, tokens, seen or [[]] * len(tokens), strict=True)
