"""The course: worksheets, exercises, lessons that train and compare small models, and ``check`` for own pieces."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kotha.course.pieces.checking import PieceResult
    from kotha.i18n.numbers import Language


def check(piece: Any, language: "Language | None" = None) -> "PieceResult":
    """Compare a piece of a GPT that you wrote with ours; recognise common mistakes.

    The name of the class or function says which piece it is (``MyAttention`` is an attention head). Both get equal
    weights and the same random inputs of several shapes. Layers are matched by name; all biases are optional.

    - ``Attention(d_model, d_head)``, called with x (B, T, C); layers: query, key, value
    - ``MultiHeadAttention(d_model, n_heads)``, x; layers: query, key, value, output
    - ``FeedForward(d_model, d_ff)``, x; layers: up, down
    - ``Block(d_model, n_heads, d_ff)``, x; layers: attention_norm, attention, feedforward_norm, feedforward
    - ``GPT(vocab_size, context_length, d_model, n_heads, d_ff, n_layers)``, tokens (B, T); layers: tokens, positions,
      blocks, norm, and a head with its own matrix or that of tokens
    - ``loss(logits, tokens)``, logits (B, T, V)
    - ``sampling(logits, temperature, top_k, top_p)``, logits (B, V): the probabilities (B, V)

    The result has ``passed``, ``message``, ``difference`` (the largest one) and ``mistake`` (the name of a known one).

    Args:
        piece: Your class or function.
        language: ``en`` or ``bn``; by default that of the environment variable KOTHA_LANGUAGE, or English.

    >>> from torch import nn
    >>> class MyFeedForward(nn.Module):
    ...     def __init__(self, d_model, d_ff):
    ...         super().__init__()
    ...         self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
    ...     def forward(self, x):
    ...         return self.down(self.up(x))
    >>> check(MyFeedForward)
    MyFeedForward: There is no activation: two matrices in a row can do no more than one. Apply GELU between them.
    """
    from kotha.course.pieces.checking import check_piece

    return check_piece(piece, language)
