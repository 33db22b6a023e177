"""The table of embeddings: who stands near whom, what a width costs, and which rows a step of training moves."""
