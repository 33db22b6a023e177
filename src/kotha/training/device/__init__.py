"""Using the machine well: its arithmetic, its memory, compiled models, micro-batches."""
