"""Pre-tokenization: where a text is cut before any vocabulary is looked at. No piece ever crosses such a cut.

A pattern decides more than it seems. The well-known ones take ``\\p{L}+`` for a word; Bangla writes its vowels as
marks (``\\p{M}``), so they cut a word at each vowel sign, and a larger vocabulary cannot mend it. Patterns here are
strings that ``regex`` and Oniguruma (inside ``tokenizers``) read alike.
"""

# Ours: a word keeps its marks and joiners, digits stay together, and at most one white-space character leads a chunk.
# So every white-space character starts a chunk, and a unigram over the whole text finds what it finds chunk by chunk.
WORDS = "\\s?[\\p{L}\\p{M}\u200c\u200d]+|\\s?\\p{N}+|\\s?[^\\s\\p{L}\\p{M}\\p{N}]+|\\s"

# Qwen3.5's, the one pattern with marks that llama.cpp knows by name, so a BPE that uses it runs there unchanged.
# A joiner is neither letter nor mark to it: র‍্যাব is cut before the ZWJ (see trainers.py for what is done about it).
QWEN35 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# GPT-2's, for the cautionary column of the report card: it cuts Bangla at each vowel sign.
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

SPLITS = {"words": WORDS, "qwen35": QWEN35, "gpt2": GPT2}
