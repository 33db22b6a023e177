"""How well a model does on what it does not learn from."""

from collections import Counter, defaultdict
from collections.abc import Callable

import torch
from torch import nn

from kotha.model.evaluating import evaluating
from kotha.train.device.precision import Arithmetic
from kotha.train.distributed import Ranks, let_go
from kotha.train.tasks.task import Score, Task


@torch.no_grad()
def validate(
    learner: nn.Module, task: Task, arithmetic: Arithmetic, ranks: Ranks, until: Callable[[], bool] | None = None
) -> Score | None:
    """Measure on the task's validation examples; each process takes its turn with the batches.

    None if ``until`` says, before it is done, that there is no more time.
    """
    batches = task.validation()
    sums: defaultdict[str, float] = defaultdict(float)
    targets: Counter[str] = Counter()
    hurried = False
    with evaluating(learner):
        for turn in range(0, len(batches), ranks.world):
            hurried = until is not None and until()
            if hurried:
                break
            mine = turn + ranks.rank
            batch = batches[mine if mine < len(batches) else 0]  # all compute, or who gathers weights would wait
            with arithmetic.autocast():
                found = learner(batch.to(arithmetic.device))
            counts = mine < len(batches)
            for name, each in found.items():
                sums[name] += float(each) * counts
            targets.update({name: count * counts for name, count in batch.targets.items()})
    let_go(learner)
    if hurried:
        return None
    total_targets = {name: round(count) for name, count in ranks.totals(dict(targets)).items()}
    return task.score(_summed(sums, ranks), total_targets)


def _summed(sums: dict[str, float], ranks: Ranks) -> dict[str, float]:
    values = ranks.sum(torch.tensor(list(sums.values()), dtype=torch.float64))
    return dict(zip(sums, values.tolist(), strict=True))
