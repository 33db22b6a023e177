"""How good a model is: on unseen text, beside what mere counting reaches, and by the curve of its training."""
