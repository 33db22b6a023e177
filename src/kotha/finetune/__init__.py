"""From examples to a use: a model learns to tell classes of texts apart, or to translate; fine-tuning among it."""
