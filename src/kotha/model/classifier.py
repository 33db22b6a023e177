"""A text classifier: a body that reads text, and a head that names a class.

No fifth body: BERT speaks for a text through its pooled first token (Devlin et al. 2018), a GPT through the last token
that it read, the only one that saw all (Radford et al. 2018,
https://cdn.openai.com/research-covers/language-unsupervised/language_understanding_paper.pdf).
"""

import torch
from torch import Tensor, nn

from kotha.errors import ConfigError
from kotha.model.bert import BERT
from kotha.model.gpt import GPT
from kotha.model.initialization import STANDARD_DEVIATION


class TextClassifier(nn.Module):
    """Texts in, scores for each class out: (B, T) -> (B, n_classes)."""

    def __init__(self, body: BERT | GPT, n_classes: int) -> None:
        super().__init__()
        if not isinstance(body, BERT | GPT):
            raise ConfigError(f"a {type(body).__name__} gives no vector for a text; classify with a BERT or a GPT")
        if n_classes < 2:
            raise ConfigError(f"n_classes={n_classes} leaves nothing to choose; use at least 2")
        self.config, self.n_classes = body.config, n_classes
        self.body = body
        self.dropout = nn.Dropout(body.config.dropout)
        self.head = nn.Linear(body.config.d_model, n_classes)
        nn.init.normal_(self.head.weight, std=STANDARD_DEVIATION)
        nn.init.zeros_(self.head.bias)

    def forward(self, tokens: Tensor, real: Tensor) -> Tensor:
        """Logits: (B, T) -> (B, n_classes). ``real`` (B, T) is False at padding, which comes last."""
        logits: Tensor = self.head(self.dropout(self.summary(tokens, real)))
        return logits

    def summary(self, tokens: Tensor, real: Tensor) -> Tensor:
        """A text as one vector: (B, T) -> (B, C)."""
        if isinstance(self.body, BERT):
            return self.body.pool(self.body.hidden(tokens, real=real))
        last = real.sum(dim=1) - 1  # (B,)
        # No mask: padding comes after the last token, which looks back only.
        return self.body.hidden(tokens)[torch.arange(len(tokens), device=tokens.device), last]
