"""Corpus readers: txt, jsonl, csv, tsv, parquet, gzip, zstd; from folders, globs, stdin, URLs and the Hugging Face hub.

Documents are streamed one at a time: memory depends on ``max_document_bytes``, not on the size of a file. Problems are
reported with file and line; the caller chooses whether to stop or to skip.
"""
