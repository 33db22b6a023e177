"""A tokenizer as ``AutoTokenizer`` opens it: the pipeline as it is, and what its special tokens are called.

Our normalization is part of ``tokenizer.json``, so the ids are the same there. One habit differs: ``transformers``
reads a special token that a text spells out as the token itself, unless it is told ``split_special_tokens=True``.
"""

import json
from pathlib import Path
from typing import Any

from kotha.files import write_whole
from kotha.text.tokenizer.tokenizer import Tokenizer

_ROLES = ("bos", "eos", "pad", "unk", "mask", "cls", "sep")
_TURNS = ("user", "assistant", "end")


def write_tokenizer(folder: Path, tokenizer: Tokenizer, context_length: int, chat: bool) -> None:
    """Write ``tokenizer.json`` and ``tokenizer_config.json``; with a chat template where turns were taught."""
    texts = {role: tokenizer.pieces[token] for role, token in tokenizer.special.items()}
    settings: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": context_length,
        "clean_up_tokenization_spaces": False,
        **{f"{role}_token": texts[role] for role in _ROLES if role in texts},
    }
    if chat and all(role in texts for role in _TURNS):
        settings["chat_template"] = chat_template(texts)
    tokenizer.save(folder)
    write_whole(folder / "tokenizer_config.json", json.dumps(settings, ensure_ascii=False, indent=2) + "\n")


def chat_template(texts: dict[str, str]) -> str:
    """Turns as the model was taught them: the speaker's mark, the text, the end's mark."""
    speakers = {role: texts[role] for role in ("system", "user", "assistant") if role in texts}
    return (
        f"{{% set marks = {json.dumps(speakers)} %}}"
        "{% for message in messages %}"
        "{% if message['role'] not in marks %}{{ raise_exception('no such role: ' + message['role']) }}{% endif %}"
        "{{ marks[message['role']] + message['content'] + " + json.dumps(texts["end"]) + " }}"
        "{% endfor %}"
        "{% if add_generation_prompt %}{{ marks['assistant'] }}{% endif %}"
    )
