"""Optimizers: AdamW with the usual groups, and Muon for the matrices of the blocks.

Weight decay pulls matrices and embeddings towards zero, never norms or biases. Muon (``muon.py``) suits the matrices
between hidden vectors. Embeddings, the head, norms and biases stay with AdamW.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from kotha.model.lora import is_low_rank
from kotha.training.config import TrainConfig
from kotha.training.distributed import local
from kotha.training.optim.muon import Muon

Named = list[tuple[str, nn.Parameter]]


class Optimizers:
    """The optimizers of a run, moved as one."""

    def __init__(self, model: nn.Module, config: TrainConfig) -> None:
        hidden, decayed, plain = split_parameters(model, use_muon=config.optimizer == "muon")
        device = next(model.parameters()).device
        fused = device.type == "cuda"
        groups = [
            {"params": [each for _, each in some], "weight_decay": decay}
            for some, decay in ((decayed, config.weight_decay), (plain, 0.0))
            if some
        ]
        rate, betas = _rate(config.learning_rate, device), (config.beta1, config.beta2)
        adamw = torch.optim.AdamW(groups, lr=rate, betas=betas, fused=fused, capturable=fused)
        self._members: list[tuple[torch.optim.Optimizer, float]] = [(adamw, config.learning_rate)]
        if hidden:
            muon = Muon([each for _, each in hidden], _rate(config.muon_learning_rate, device), config.weight_decay)
            self._members.append((muon, config.muon_learning_rate))
        self._names = {id(each): name for name, each in [*hidden, *decayed, *plain]}

    @property
    def members(self) -> Iterable[torch.optim.Optimizer]:
        """Each optimizer."""
        return [member for member, _ in self._members]

    def set_share(self, share: float) -> None:
        """Set every learning rate to a share of its largest."""
        for member, largest in self._members:
            for group in member.param_groups:
                if isinstance(group["lr"], Tensor):
                    group["lr"].fill_(largest * share)
                else:
                    group["lr"] = largest * share

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for member in self.members:
            member.zero_grad(set_to_none=True)

    def step(self, scaler: torch.amp.GradScaler) -> None:
        """Move the weights."""
        for member in self.members:
            scaler.step(member)

    def state(self) -> dict[str, Tensor]:
        """All that the optimizers remember, by parameter: ``NAME/KEY``."""
        found: dict[str, Tensor] = {}
        for member in self.members:
            for parameter, memory in member.state.items():
                for key, value in memory.items():
                    found[f"{self._names[id(parameter)]}/{key}"] = value
        return found

    def load_state(self, saved: dict[str, Tensor]) -> None:
        """Remember again what ``state`` gave."""
        by_name: dict[str, dict[str, Tensor]] = {}
        for path, value in saved.items():
            name, key = path.rsplit("/", 1)
            by_name.setdefault(name, {})[key] = value
        for member in self.members:
            for group in member.param_groups:
                for parameter in group["params"]:
                    memory = by_name.get(self._names[id(parameter)], {})
                    if memory:
                        member.state[parameter] = {key: _like(value, key, parameter) for key, value in memory.items()}


def _rate(largest: float, device: torch.device) -> float | Tensor:
    """A learning rate; on a GPU a number in its memory, which a recorded step reads anew each time."""
    return torch.tensor(largest, device=device) if device.type == "cuda" else largest


@torch.no_grad()
def _like(value: Tensor, key: str, parameter: nn.Parameter) -> Tensor:
    """A remembered tensor as the optimizer wants it; a step count is a number beside the parameter."""
    if key == "step":
        return value.to(parameter.device, copy=True)
    like = torch.empty_like(parameter, dtype=value.dtype)
    local(like).copy_(value)
    return like.detach()


def split_parameters(model: nn.Module, use_muon: bool) -> tuple[Named, Named, Named]:
    """Those parameters that learn, as (for Muon, for AdamW with decay, for AdamW without).

    Muon turns a matrix towards an orthogonal one, which the narrow matrices of LoRA are not meant to be.
    """
    outside: set[int] = set()
    for name, module in model.named_modules():
        inside = {"stack", "blocks"} & set(name.split("."))  # else a head, or a projection of the input
        if isinstance(module, nn.Embedding) or (isinstance(module, nn.Linear) and not inside):
            outside |= {id(each) for each in module.parameters()}
    hidden: Named = []
    decayed: Named = []
    plain: Named = []
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        if parameter.dim() < 2:
            plain.append((name, parameter))
        elif use_muon and parameter.dim() == 2 and id(parameter) not in outside and not is_low_rank(name):
            hidden.append((name, parameter))
        else:
            decayed.append((name, parameter))
    return hidden, decayed, plain
