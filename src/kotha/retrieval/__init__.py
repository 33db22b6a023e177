"""Retrieval: passages, a single-file index, ranking by words and by meaning, and answers with citations."""
