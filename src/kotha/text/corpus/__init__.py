"""Documents in: txt, jsonl, csv, tsv and parquet, gzip and zstd, folders, globs, stdin, hub data sets, sentence pairs.

Everything is streamed, one document at a time: memory depends on ``max_document_bytes``, not on the size of a file.
What is wrong with an input is said with file and line, and then stopped at, left out or mended, as the caller wishes.
"""

from kotha.text.corpus.documents import MAX_DOCUMENT_BYTES, Document, Pair, read_documents, read_pairs
from kotha.text.corpus.hub import Hub, HuggingFaceHub
from kotha.text.corpus.problems import CorpusProblem, Errors
from kotha.text.corpus.report import CorpusReport, inspect_corpus
from kotha.text.corpus.sources import FORMATS, Source, list_sources

__all__ = [
    "FORMATS",
    "MAX_DOCUMENT_BYTES",
    "CorpusProblem",
    "CorpusReport",
    "Document",
    "Errors",
    "Hub",
    "HuggingFaceHub",
    "Pair",
    "Source",
    "inspect_corpus",
    "list_sources",
    "read_documents",
    "read_pairs",
]
