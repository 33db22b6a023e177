"""Training on labelled examples: classification, translation and instruction tuning, including fine-tuning."""
