"""Optimization: AdamW and Muon, learning rate schedules, and the moving average of the weights (EMA).

Schedules give the learning rate as a fraction of its peak. After a warm-up it is constant, follows a cosine, or stays
constant until a final decay (WSD: warm-up, stable, decay). ``inverse-sqrt`` is the schedule of the original transformer
(https://arxiv.org/abs/1706.03762, section 5.3): after the warm-up the rate falls with the square root of the step,
independently of the number of steps, without a floor. The fraction depends only on the step, so a resumed run continues
at the same rate. Each update moves the average a little towards the weights. The first updates move it more, so that
the initial random weights soon have no effect.

Weight decay applies to matrices and embeddings, not to norms and biases. Muon replaces the momentum with the nearest
orthogonal matrix, so that the update is equally large in all directions. It is used for matrices that map hidden
vectors to hidden vectors; embeddings, the head, norms and biases use AdamW. The nearest orthogonal matrix is
approximated by five steps of a Newton-Schulz iteration, an odd polynomial of the matrix that moves all its singular
values towards one (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/).

``torch.optim.Muon`` is the same algorithm, but always in bfloat16. On a CPU without bfloat16 products that type is many
times slower, and it rounds differently after an error in oneDNN. This implementation therefore uses float32 on a CPU. A
test compares the two implementations.
"""

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

from kotha.model.lora import is_low_rank
from kotha.training.config import TrainConfig
from kotha.training.distributed import local, rowwise

# -- learning rate -----------------------------------------------------------------------------------------------------


def learning_rate_share(step: int, config: TrainConfig) -> float:
    """Return the learning rate at a step (counted from 0) as a fraction of its peak.

    >>> course = TrainConfig(steps=20_000, warmup_steps=1000, schedule="cosine", floor=0.1)
    >>> 3e-4 * learning_rate_share(500, course)
    0.00015
    """
    if step < config.warmup_steps:
        return step / config.warmup_steps
    if config.schedule == "inverse-sqrt":
        return math.sqrt(max(1, config.warmup_steps) / max(1, step))
    height = 1.0  # above the floor
    if config.schedule == "cosine":  # half a cosine from the end of the warm-up to the last step
        passed = (step - config.warmup_steps) / max(1, config.steps - config.warmup_steps)
        height = 0.5 * (1 + math.cos(math.pi * min(1.0, passed)))
    elif config.schedule == "stable":  # 1 until the last steps, then linear decay
        height = min(1.0, max(0, config.steps - step) / (config.decay_steps or max(1, config.steps // 5)))
    return config.floor + (1 - config.floor) * height


def schedule_steps(config: TrainConfig, count: int) -> list[int]:
    """Return up to ``count`` evenly spaced steps of a run, including the first and the last."""
    last = config.steps - 1
    return sorted({round(index * last / max(1, count - 1)) for index in range(count)})


# -- optimizers --------------------------------------------------------------------------------------------------------


Named = list[tuple[str, nn.Parameter]]


class Optimizers:
    """The optimizers of a run, behind the interface of a single optimizer."""

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
        if fused:
            usual: torch.optim.Optimizer = torch.optim.AdamW(groups, lr=rate, betas=betas, fused=True, capturable=True)
        else:
            _skip_compiler_import()
            usual = _AdamW(groups, lr=rate, betas=betas)
        self.members: dict[torch.optim.Optimizer, float] = {usual: config.learning_rate}  # with their peak rates
        if hidden:
            muon = Muon([each for _, each in hidden], _rate(config.muon_learning_rate, device), config.weight_decay)
            self.members[muon] = config.muon_learning_rate
        self._names = {id(each): name for name, each in [*hidden, *decayed, *plain]}

    def set_share(self, share: float) -> None:
        """Set every learning rate to a fraction of its peak."""
        for member, largest in self.members.items():
            for group in member.param_groups:
                if isinstance(group["lr"], Tensor):
                    group["lr"].fill_(largest * share)
                else:
                    group["lr"] = largest * share

    def zero_grad(self) -> None:
        """Clear the gradients."""
        for member in self.members:
            member.zero_grad(set_to_none=True)

    def step(self, scaler: torch.amp.GradScaler) -> None:
        """Update the weights."""
        for member in self.members:
            scaler.step(member)

    def state(self) -> dict[str, Tensor]:
        """Return the state of all optimizers, with keys ``NAME/KEY`` by parameter."""
        found: dict[str, Tensor] = {}
        for member in self.members:
            for parameter, memory in member.state.items():
                for key, value in memory.items():
                    found[f"{self._names[id(parameter)]}/{key}"] = value
        return found

    def load_state(self, saved: dict[str, Tensor]) -> None:
        """Restore the state that ``state`` returned."""
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


class _AdamW(torch.optim.AdamW):
    """AdamW for a CPU: torch's own step, without its import of torch's compiler, which takes seconds."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:
        """Update every parameter that has a gradient."""
        assert closure is None, "this optimizer computes no losses"
        for group in self.param_groups:
            lists: Any = ([], [], [], [], [], [])  # parameters, gradients, and the state of each
            self._init_group(group, *lists)  # type: ignore[no-untyped-call]
            names = ("amsgrad", "lr", "weight_decay", "eps", "maximize")
            beta1, beta2 = group["betas"]
            adamw(*lists, beta1=beta1, beta2=beta2, **{name: group[name] for name in names})


def _skip_compiler_import() -> None:
    """Keep torch from importing its compiler only to exclude these methods from compilation."""
    if "torch._dynamo" not in sys.modules:
        each = torch.optim.Optimizer
        for method in (each.add_param_group, each.zero_grad, each.state_dict, each.load_state_dict):
            plain = getattr(method, "__wrapped__", method)
            plain.__dict__.setdefault("__dynamo_disable", plain)


def _rate(largest: float, device: torch.device) -> float | Tensor:
    """Return a learning rate; on a GPU, as a tensor, which a recorded step reads at each replay."""
    return torch.tensor(largest, device=device) if device.type == "cuda" else largest


@torch.no_grad()
def _like(value: Tensor, key: str, parameter: nn.Parameter) -> Tensor:
    """Convert a saved tensor for the optimizer, which stores the step count as a scalar on the parameter's device."""
    if key == "step":
        return value.to(parameter.device, copy=True)
    like = torch.empty_like(parameter, dtype=value.dtype)
    local(like).copy_(value)
    return like.detach()


def split_parameters(model: nn.Module, use_muon: bool) -> tuple[Named, Named, Named]:
    """Return the trainable parameters as (for Muon, for AdamW with decay, for AdamW without decay).

    LoRA matrices use AdamW, because they should not become orthogonal.
    """
    outside: set[int] = set()
    for name, module in model.named_modules():
        inside = {"stack", "blocks"} & set(name.split("."))  # all others are heads or input projections
        if isinstance(module, nn.Embedding) or (isinstance(module, nn.Linear) and not inside):
            outside |= {id(each) for each in module.parameters()}
    hidden: Named = []
    decayed: Named = []
    plain: Named = []
    for name, each in model.named_parameters():
        if each.requires_grad:
            orthogonal = use_muon and each.dim() == 2 and id(each) not in outside and not is_low_rank(name)
            (plain if each.dim() < 2 else hidden if orthogonal else decayed).append((name, each))
    return hidden, decayed, plain


# -- Muon --------------------------------------------------------------------------------------------------------------


_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_STEPS = 5


class Muon(torch.optim.Optimizer):
    """Muon, for matrices only; the learning rate is scaled so that updates are as large as AdamW's."""

    def __init__(
        self, params: Iterable[nn.Parameter], lr: float | Tensor, weight_decay: float = 0.1, momentum: float = 0.95
    ) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})
        for group in self.param_groups:
            for parameter in group["params"]:
                assert parameter.dim() == 2, f"Muon is for matrices, not for shape {tuple(parameter.shape)}"

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:
        """Update every matrix that has a gradient."""
        assert closure is None, "this optimizer computes no losses"
        for group in self.param_groups:
            moving = [each for each in group["params"] if each.grad is not None]
            for alike in _batches(moving):
                self._update_matrices(alike, group)

    def _update_matrices(self, parameters: Sequence[nn.Parameter], group: dict[str, Any]) -> None:
        """Update matrices of one shape in one batch."""
        ahead = self._look_ahead(parameters, group["momentum"])
        # A sharded matrix is updated separately, because all of its rows are needed.
        alone = len(ahead) == 1
        updates = rowwise(orthogonalize, ahead[0]) if alone else orthogonalize(torch.stack(ahead))
        as_adamw = 0.2 * math.sqrt(max(parameters[0].shape))  # AdamW's updates have a root mean square of about 0.2
        moves = updates.to(parameters[0].dtype) * (group["lr"] * as_adamw)
        weights = [each.data for each in parameters]
        torch._foreach_mul_(weights, 1 - group["lr"] * group["weight_decay"])
        torch._foreach_sub_(weights, [moves] if alone else [*moves])

    def _look_ahead(self, parameters: Sequence[nn.Parameter], share: float) -> list[Tensor]:
        """Update the momentum and return Nesterov's look-ahead gradients."""
        gradients = [each.grad for each in parameters if each.grad is not None]
        for parameter, gradient in zip(parameters, gradients, strict=True):
            if "momentum" not in self.state[parameter]:
                self.state[parameter]["momentum"] = torch.zeros_like(gradient)
        momenta: list[Tensor] = [self.state[each]["momentum"] for each in parameters]
        torch._foreach_lerp_(momenta, gradients, 1 - share)
        if len(gradients) == 1:  # torch 2.11 has no foreach lerp of sharded tensors
            return [gradients[0].lerp(momenta[0], share)]
        return [*torch._foreach_lerp(gradients, momenta, share)]


def _batches(parameters: Sequence[nn.Parameter]) -> Iterable[Sequence[nn.Parameter]]:
    """Yield the matrices to orthogonalize together: on a GPU all matrices of one shape, otherwise one at a time."""
    by_shape: dict[object, list[nn.Parameter]] = {}
    for index, each in enumerate(parameters):
        together = each.is_cuda and not hasattr(each, "full_tensor")
        by_shape.setdefault(each.shape if together else index, []).append(each)
    return by_shape.values()


def orthogonalize(matrix: Tensor) -> Tensor:
    """Approximate the nearest orthogonal matrix, with singular values from 0.7 to 1.2: (m, n) or (b, m, n) -> same."""
    a, b, c = _COEFFICIENTS
    x = matrix.bfloat16() if matrix.is_cuda else matrix.float()
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x  # so that x @ x.mT is the smaller product
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    add_product = torch.addmm if x.dim() == 2 else torch.baddbmm  # addition fused with the product
    for _ in range(_STEPS):  # a x + (b s + c s s) x, where s is x x^T
        square = x @ x.mT
        x = add_product(x, add_product(square, square, square, beta=b, alpha=c), x, beta=a)
    result: Tensor = x.mT if tall else x
    return result


# -- averages ----------------------------------------------------------------------------------------------------------


class Average:
    """The exponential moving average of a model's trainable parameters, in float32."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self._decay = decay
        self.updates = 0
        self.tensors = {name: each.detach().float().clone() for name, each in _trainable(model)}

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        """Update the average with the current weights."""
        self.updates += 1
        decay = min(self._decay, (1 + self.updates) / (10 + self.updates))
        weights = [local(each).float() for _, each in _trainable(model)]
        torch._foreach_lerp_([local(each) for each in self.tensors.values()], weights, 1 - decay)

    def load(self, tensors: dict[str, Tensor], updates: int) -> None:
        """Restore a saved average."""
        self.updates = updates
        for name, each in self.tensors.items():
            local(each).copy_(local(tensors[name]))


def _trainable(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    return ((name, each) for name, each in model.named_parameters() if each.requires_grad)


@contextmanager
def swapped_weights(model: nn.Module, tensors: dict[str, Tensor]) -> Iterator[None]:
    """Replace some weights of the model for the duration of a ``with`` block."""
    kept = {name: each.detach().clone() for name, each in model.named_parameters() if name in tensors}
    copy_into(model, tensors)
    try:
        yield
    finally:
        copy_into(model, kept)


@torch.no_grad()
def copy_into(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Copy tensors into the parameters with the same names; sharded parameters get only the local part."""
    parameters = dict(model.named_parameters())
    for name, each in tensors.items():
        local(parameters[name]).copy_(local(each))
