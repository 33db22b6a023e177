"""Muon, beside torch's."""

import torch

from kotha.training.optim import Muon, orthogonalize


def test_singular_values_come_near_one() -> None:
    torch.manual_seed(0)
    for shape in ((16, 16), (8, 32), (32, 8)):
        values = torch.linalg.svdvals(orthogonalize(torch.randn(shape)))
        assert values.min() > 0.5
        assert values.max() < 1.3


def test_it_moves_as_torch_does() -> None:
    torch.manual_seed(0)
    start = torch.randn(24, 40)
    ours, theirs = (torch.nn.Parameter(start.clone()) for _ in range(2))
    one = Muon([ours], lr=0.01, weight_decay=0.1)
    other = torch.optim.Muon([theirs], lr=0.01, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)  # torch warns where it cannot multiply in bfloat16 by oneDNN
    for _ in range(5):
        ours.grad = theirs.grad = torch.randn(24, 40)
        one.step()
        other.step()
    torch._C._set_mkldnn_enabled(before)
    moved = (theirs - start).norm()
    assert (ours - theirs).norm() / moved < 0.02, "torch's rounds to bfloat16, so nearly is as near as it gets"
