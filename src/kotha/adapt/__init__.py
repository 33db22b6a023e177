"""Fine-tuning: a trained model put to a use of its own, such as telling classes of texts apart."""
