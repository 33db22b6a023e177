"""The marks that a model's texts stood between in training, for a tokenizer that puts them there by itself."""

from kotha.model.config import BERTConfig, ClassifierConfig, GPTConfig, ModelConfig
from kotha.text.tokenizer.prompt import framed, start_of_document
from kotha.text.tokenizer.tokenizer import Tokenizer


def with_marks_of(tokenizer: Tokenizer, config: ModelConfig) -> Tokenizer:
    """The tokenizer as whoever opens it elsewhere expects: what it makes of a text, this model reads."""
    before, after = list[int](), list[int]()
    if isinstance(config, ClassifierConfig):
        *before, end = (tokenizer.special[role] for role in config.marks)
        after = [end]
    elif isinstance(config, BERTConfig) and {"cls", "sep"} <= tokenizer.special.keys():
        before, after = [tokenizer.special["cls"]], [tokenizer.special["sep"]]
    elif isinstance(config, GPTConfig):
        start = start_of_document(tokenizer)
        before = [] if start is None else [start]
    else:
        return tokenizer
    does_so_already = tokenizer.backend.encode("").ids == [*before, *after]
    return tokenizer if does_so_already else framed(tokenizer, before, after)
