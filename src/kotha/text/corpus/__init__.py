"""Documents in: txt, jsonl, csv, tsv and parquet, gzip and zstd, folders, globs, stdin, addresses, the hub, pairs.

Everything is streamed, one document at a time: memory depends on ``max_document_bytes``, not on the size of a file.
What is wrong with an input is said with file and line, and then stopped at, left out or mended, as the caller wishes.
"""
