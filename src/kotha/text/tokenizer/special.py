"""Special tokens, named once.

A special token has a role (what it does) and a text (how it is written in the vocabulary). Code asks for roles; only
this file knows the texts, ours and those of the tokenizers that we import.
"""

from collections.abc import Container

# Our own generative tokenizers: one mark ends a document and starts the next, as in GPT-2.
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

# BERT's, in BERT's order.
BERT: dict[str, str] = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}

# How each role is written by us and by others, first match wins.
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
    """Which role is written how in a vocabulary; roles that it lacks are absent.

    >>> find_roles({"<s>", "</s>", "<unk>"})
    {'eos': '</s>', 'bos': '<s>', 'unk': '<unk>', 'cls': '<s>', 'sep': '</s>'}
    """
    found = ((role, next((text for text in texts if text in vocabulary), None)) for role, texts in KNOWN_TEXTS.items())
    return {role: text for role, text in found if text is not None}
