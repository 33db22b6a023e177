"""The optimizer that is timed on a slice against torch's."""

import torch

from kotha.training.plan.step_time import adamw


def test_the_timed_adamw_moves_as_torchs_does() -> None:
    generator = torch.Generator().manual_seed(0)
    start, *gradients = torch.randn(4, 5, 7, generator=generator)
    theirs = torch.nn.Parameter(start.clone())
    optimizer = torch.optim.AdamW([theirs], foreach=False)
    ours, mean, square = start.clone(), torch.zeros_like(start), torch.zeros_like(start)
    for step, gradient in enumerate(gradients, start=1):
        theirs.grad = gradient
        optimizer.step()
        adamw(ours, gradient, mean, square, step=step)
    assert torch.equal(ours, theirs)
