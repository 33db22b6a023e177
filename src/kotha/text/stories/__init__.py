"""The built-in corpus: original Bangla from a grammar that knows the probability of each text."""
