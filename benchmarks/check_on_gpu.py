"""On a GPU machine without pytest: the two readings of attention, and the chunked loss beside the plain one."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

import torch

from kotha.model.attention import set_reading
from kotha.model.family import build
from kotha.model.loss import chunked_loss
from kotha.model.presets import preset


def main() -> None:
    torch.manual_seed(0)
    for name in ("bangla-58m", "bangla-modern"):
        model = build(preset(name)).cuda().eval()
        tokens = torch.randint(0, model.config.vocab_size, (2, 128), device="cuda")
        with torch.no_grad():
            fused = model(tokens)
            set_reading(model, "explicit")
            print(f"{name}: explicit - fused at most {(model(tokens) - fused).abs().max().item():.1e}")
    rows = torch.randn(4096, 512, device="cuda", requires_grad=True)
    weight = (0.02 * torch.randn(32_100, 512, device="cuda")).requires_grad_()
    targets = torch.randint(0, 32_100, (4096,), device="cuda")
    plain = torch.nn.functional.cross_entropy(rows @ weight.T, targets, label_smoothing=0.1)
    wanted = torch.autograd.grad(plain, (rows, weight))
    ours = chunked_loss(rows, weight, targets, None, 0.1)
    found = torch.autograd.grad(ours, (rows, weight))
    worst = max((a - b).abs().max().item() for a, b in zip(wanted, found, strict=True))
    print(f"loss: difference {abs(plain.item() - ours.item()):.1e}, of gradients at most {worst:.1e}")


if __name__ == "__main__":
    main()
