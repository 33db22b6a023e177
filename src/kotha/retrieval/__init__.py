"""Retrieval: passages, an index in one file, ranking by words and by meaning, and answers with citations."""
