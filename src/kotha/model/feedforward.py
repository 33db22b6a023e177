"""The feed-forward part (MLP), applied at each position: widen, apply ReLU, GELU or a SwiGLU gate, and project back."""

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn.functional import silu

from kotha.model.config import BlockConfig

# GPT-2 uses the tanh approximation of GELU, BERT and ViT the exact formula (https://arxiv.org/abs/1606.08415).
ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "gelu-tanh": lambda: nn.GELU(approximate="tanh"),
}


class FeedForward(nn.Module):
    """Two matrices with an activation between them: (B, T, C) -> (B, T, C)."""

    def __init__(self, config: BlockConfig) -> None:
        super().__init__()
        self.up = nn.Linear(config.d_model, config.d_ff, bias=config.feedforward_bias)
        self.activation = ACTIVATIONS[config.activation]()
        self.down = nn.Linear(config.d_ff, config.d_model, bias=config.feedforward_bias)

    def forward(self, x: Tensor) -> Tensor:
        """Widen, activate, project back."""
        inner = self.activation(self.up(x))  # (B, T, d_ff)
        y: Tensor = self.down(inner)  # (B, T, C)
        return y


class SwiGLU(nn.Module):
    """Three matrices, one of them a gate (https://arxiv.org/abs/2002.05202): (B, T, C) -> (B, T, C)."""

    def __init__(self, config: BlockConfig) -> None:
        super().__init__()
        self.gate = nn.Linear(config.d_model, config.d_ff, bias=config.feedforward_bias)
        self.up = nn.Linear(config.d_model, config.d_ff, bias=config.feedforward_bias)
        self.down = nn.Linear(config.d_ff, config.d_model, bias=config.feedforward_bias)

    def forward(self, x: Tensor) -> Tensor:
        """Project to the larger width twice, multiply by the gate, and project back."""
        inner = silu(self.gate(x)) * self.up(x)  # (B, T, d_ff)
        y: Tensor = self.down(inner)  # (B, T, C)
        return y


def make_feedforward(config: BlockConfig) -> FeedForward | SwiGLU:
    """Return the feed-forward module for a config."""
    return SwiGLU(config) if config.activation == "swiglu" else FeedForward(config)
