"""Readers for txt, jsonl, csv, tsv and parquet (also compressed), from folders, globs, stdin, URLs and the hub.

Documents are streamed one at a time, so memory use depends on ``max_document_bytes``, not on the size of a file.
Problems are reported with file and line; the caller chooses whether to stop or to skip the document.
"""
