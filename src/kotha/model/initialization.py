"""Weight initialization.

==========  ============================================================================================================
``gpt2``    All matrices and embeddings are normal with std 0.02. The two matrices of a block that write to the residual
            stream are divided by sqrt(2 n_layers), so that its size does not grow with depth (Radford et al. 2019).
            BERT, ViT and Qwen3 also use a std of 0.02. Models with matrices at 1/sqrt(inputs) and embeddings at 0.02
            trained worse, because the output of the first blocks is then much larger than the embeddings.
``xavier``  Matrices are uniform by Glorot's rule. Embeddings are normal with std 1/sqrt(d_model), which the 2017
            paper's factor sqrt(d_model) turns into 1 (https://arxiv.org/abs/1706.03762).
==========  ============================================================================================================

Biases start at 0 and norms at 1. Models are built with all heads; removed heads are deleted afterwards.
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
    """Initialize all weights of a model, in place."""
    writers = residual_writers(model)
    for module in model.modules() if not next(model.parameters()).is_meta else ():  # meta tensors have no values
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
    """Return the matrices whose output is added to the residual stream."""
    attentions = [module.output for module in model.modules() if isinstance(module, Attention)]
    return {*attentions, *(module.down for module in model.modules() if isinstance(module, FeedForward | SwiGLU))}
