"""Special tokens: their roles and texts.

A special token has a role (its purpose) and a text (its spelling in the vocabulary). The code refers to roles; only
this file contains the texts, for Kotha's own tokenizers and for imported ones.
"""

from collections.abc import Container

# Kotha's generative tokenizers: one token ends a document and starts the next, as in GPT-2.
GENERATIVE: dict[str, str] = {
    "eos": "<|endoftext|>",
    "pad": "<|pad|>",
    "unk": "<|unk|>",
    "mask": "<|mask|>",
    "system": "<|system|>",
    "user": "<|user|>",
    "assistant": "<|assistant|>",
    "end": "<|end|>",
}

# BERT's tokens, in BERT's order.
BERT: dict[str, str] = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}

# Known texts of each role; the first match is used.
KNOWN_TEXTS: dict[str, tuple[str, ...]] = {
    "eos": ("<|endoftext|>", "</s>", "<eos>", "<|end_of_text|>", "[EOS]", "[SEP]"),
    "bos": ("<s>", "<bos>", "<|begin_of_text|>", "[BOS]", "<|endoftext|>", "[CLS]"),
    "pad": ("<|pad|>", "<pad>", "[PAD]"),
    "unk": ("<|unk|>", "<unk>", "[UNK]"),
    "mask": ("<|mask|>", "<mask>", "[MASK]"),
    "cls": ("[CLS]", "<s>"),
    "sep": ("[SEP]", "</s>"),
    "system": ("<|system|>",),
    "user": ("<|user|>",),
    "assistant": ("<|assistant|>",),
    "end": ("<|end|>", "<|im_end|>"),
}


def find_roles(vocabulary: Container[str]) -> dict[str, str]:
    """Return the text of each role that a vocabulary has.

    >>> find_roles({"<s>", "</s>", "<unk>"})
    {'eos': '</s>', 'bos': '<s>', 'unk': '<unk>', 'cls': '<s>', 'sep': '</s>'}
    """
    found = ((role, next((text for text in texts if text in vocabulary), None)) for role, texts in KNOWN_TEXTS.items())
    return {role: text for role, text in found if text is not None}
