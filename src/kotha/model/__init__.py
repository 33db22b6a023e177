"""Models: GPT, BERT, Seq2Seq and ViT. All four architectures share one attention module and one block.

Shapes use these symbols: B batch, T query positions, S key positions, C model width, H heads, D head width, V
vocabulary. Configs and presets do not import torch; the other modules do.
"""
