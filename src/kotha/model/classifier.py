"""A text classifier: a body that reads text, and a head that names a class.

No fifth body: BERT speaks for a text through its pooled first token (Devlin et al. 2018), a GPT through the last token
that it read, the only one that saw all (Radford et al. 2018,
https://cdn.openai.com/research-covers/language-unsupervised/language_understanding_paper.pdf). What the body would
only need for words, its own heads, is not there. A GPT's head has no bias, as in Hugging Face's layouts.
"""

import torch
from torch import Tensor, nn

from kotha.model.bert import BERT
from kotha.model.config import BERTClassifierConfig, ClassifierConfig
from kotha.model.gpt import GPT
from kotha.model.initialization import STANDARD_DEVIATION

_ONLY_FOR_WORDS = ("head", "pair_head", "transform", "transform_norm")


class TextClassifier(nn.Module):
    """Texts in, scores for each class out: (B, T) -> (B, K)."""

    def __init__(self, config: ClassifierConfig) -> None:
        super().__init__()
        self.config = config
        self.body: BERT | GPT = BERT(config) if isinstance(config, BERTClassifierConfig) else GPT(config)
        for name in _ONLY_FOR_WORDS:
            if hasattr(self.body, name):
                delattr(self.body, name)
        self.dropout = nn.Dropout(config.dropout)
        self.head = nn.Linear(config.d_model, len(config.labels), bias=isinstance(self.body, BERT))
        nn.init.normal_(self.head.weight, std=STANDARD_DEVIATION)
        if self.head.bias is not None:
            nn.init.zeros_(self.head.bias)

    def forward(self, tokens: Tensor, real: Tensor) -> Tensor:
        """Logits: (B, T) -> (B, K). ``real`` (B, T) is False at padding, which comes last."""
        logits: Tensor = self.head(self.dropout(self.summary(tokens, real)))
        return logits

    def summary(self, tokens: Tensor, real: Tensor) -> Tensor:
        """A text as one vector: (B, T) -> (B, C)."""
        if isinstance(self.body, BERT):
            return self.body.pool(self.body.hidden(tokens, real=real))
        last = real.sum(dim=1) - 1  # (B,)
        # No mask: padding comes after the last token, which looks back only.
        return self.body.hidden(tokens)[torch.arange(len(tokens), device=tokens.device), last]
