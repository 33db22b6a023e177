"""The model room: one attention and one block in four bodies, GPT, BERT, Seq2Seq and ViT.

Shapes are written with one legend: B batch, T query positions, S key positions, C model width, H heads, D head
width, V vocabulary. Configs and presets import no torch; everything else here does.
"""
