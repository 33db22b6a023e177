"""How weights start.

==========  ============================================================================================================
``gpt2``    Every matrix and table normal with 0.02; the two matrices that write into the residual path smaller by
            sqrt(2 n_layers), so that the sum of all layers starts at one size (Radford et al. 2019). BERT, ViT and
            Qwen3 publish 0.02 too. Matrices at 1/sqrt(inputs) beside tables at 0.02 learned worse: what the first
            blocks write then drowns the tokens.
``xavier``  Matrices uniform by Glorot's rule, tables normal with 1/sqrt(d_model), which the sqrt(d_model) of the 2017
            paper's embedding turns into 1 (https://arxiv.org/abs/1706.03762).
==========  ============================================================================================================

Biases start at 0, norms at 1. Heads that the config has removed are cut off at the end: a body is built whole.
"""

import math

import torch
from torch import nn

from kotha.model.attention import Attention
from kotha.model.config import ModelConfig
from kotha.model.feedforward import FeedForward, SwiGLU
from kotha.model.norm import RMSNorm
from kotha.model.pruning import cut

STANDARD_DEVIATION = 0.02


@torch.no_grad()
def initialize(model: nn.Module, config: ModelConfig) -> None:
    """Give every weight of a model its first value, in place."""
    writers = residual_writers(model)
    for module in model.modules() if not next(model.parameters()).is_meta else ():  # a shape alone has no values
        if isinstance(module, nn.Linear):
            if config.initialization == "xavier":
                nn.init.xavier_uniform_(module.weight)
            else:
                shrink = math.sqrt(2 * config.n_layers) if module in writers else 1.0
                nn.init.normal_(module.weight, std=STANDARD_DEVIATION / shrink)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            std = config.d_model**-0.5 if config.initialization == "xavier" else STANDARD_DEVIATION
            nn.init.normal_(module.weight, std=std)
        elif isinstance(module, nn.LayerNorm | RMSNorm):
            nn.init.ones_(module.weight)
            if isinstance(module, nn.LayerNorm):
                nn.init.zeros_(module.bias)
    cut(model, config)


def residual_writers(model: nn.Module) -> set[nn.Linear]:
    """The matrices whose output is added to the residual path."""
    attentions = [module.output for module in model.modules() if isinstance(module, Attention)]
    return {*attentions, *(module.down for module in model.modules() if isinstance(module, FeedForward | SwiGLU))}
