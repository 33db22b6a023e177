"""Models: one attention and one block, shared by four architectures, GPT, BERT, Seq2Seq and ViT.

Shapes use one legend: B batch, T query positions, S key positions, C model width, H heads, D head width,
V vocabulary. Configs and presets do not import torch; the other modules do.
"""
