"""Measuring a model on held-out batches, shared out among the processes that train it."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

import torch
from torch import nn

from kotha.model.evaluating import evaluating
from kotha.training.device import Arithmetic
from kotha.training.distributed import Ranks, let_go
from kotha.training.tasks.task import Batch


@torch.no_grad()
def validate(
    learner: nn.Module,
    batches: Sequence[Batch],
    arithmetic: Arithmetic,
    ranks: Ranks,
    until: Callable[[], bool] | None = None,
) -> tuple[dict[str, float], dict[str, int]] | None:
    """What a score is made from: the sums of ``measure`` and of targets; each process takes its turn with the batches.

    None if ``until`` says, before it is done, that there is no more time.
    """
    sums: defaultdict[str, float] = defaultdict(float)
    targets: Counter[str] = Counter()
    hurried = False
    with evaluating(learner):
        for mine in range(ranks.rank, len(batches) + ranks.rank, ranks.world):
            hurried = until is not None and until()
            if hurried:
                break
            counts = mine < len(batches)
            batch = batches[mine if counts else 0]  # all compute, or who gathers weights would wait
            with arithmetic.autocast():
                found = learner(batch.to(arithmetic.device))
            for name, each in found.items():
                sums[name] += float(each) * counts
            targets.update({name: count * counts for name, count in batch.targets.items()})
    let_go(learner)
    if hurried:
        return None
    return ranks.totals(sums), {name: round(count) for name, count in ranks.totals(targets).items()}
