"""Documents to ask: passages, an index of them in one file, ranking by words and by meaning, answers with citations."""
