"""Text classifiers: a BERT or GPT body with a classification head.

BERT represents a text by its pooled first token (Devlin et al. 2018), GPT by its last token, which is the only one that
attends to all others (Radford et al. 2018,
https://cdn.openai.com/research-covers/language-unsupervised/language_understanding_paper.pdf). The body's own heads are
removed. The head of a GPT classifier has no bias, as in Hugging Face's architectures.
"""

import torch
from torch import Tensor, nn

from kotha.model.bert import BERT
from kotha.model.config import BERTClassifierConfig, ClassifierConfig
from kotha.model.gpt import GPT
from kotha.model.initialization import STANDARD_DEVIATION

_BODY_HEADS = ("head", "pair_head", "transform", "transform_norm")


class TextClassifier(nn.Module):
    """Maps texts to logits for each class: (B, T) -> (B, K)."""

    def __init__(self, config: ClassifierConfig) -> None:
        super().__init__()
        self.config = config
        self.body: BERT | GPT = BERT(config) if isinstance(config, BERTClassifierConfig) else GPT(config)
        for name in _BODY_HEADS:
            if hasattr(self.body, name):
                delattr(self.body, name)
        self.dropout = nn.Dropout(config.dropout)
        self.head = nn.Linear(config.d_model, len(config.labels), bias=isinstance(self.body, BERT))
        nn.init.normal_(self.head.weight, std=STANDARD_DEVIATION)
        if self.head.bias is not None:
            nn.init.zeros_(self.head.bias)

    def forward(self, tokens: Tensor, real: Tensor) -> Tensor:
        """Logits: (B, T) -> (B, K). ``real`` (B, T) is False at padding, which is at the end."""
        logits: Tensor = self.head(self.dropout(self.summary(tokens, real)))
        return logits

    def summary(self, tokens: Tensor, real: Tensor) -> Tensor:
        """Return one vector for each text: (B, T) -> (B, C)."""
        if isinstance(self.body, BERT):
            return self.body.pool(self.body.hidden(tokens, real=real))
        last = real.sum(dim=1) - 1  # (B,)
        # No mask is needed: padding comes after the last token, which attends only to earlier ones.
        return self.body.hidden(tokens)[torch.arange(len(tokens), device=tokens.device), last]
