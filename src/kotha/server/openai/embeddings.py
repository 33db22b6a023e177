"""``POST /v1/embeddings``: texts as vectors of length 1."""

import base64
from typing import Any

import numpy as np

from kotha.server.errors import RefusedError, UnsupportedByModelError
from kotha.server.model_registry import Served
from kotha.server.openai.schema import EmbeddingRequest
from kotha.server.settings import Limits


def embed(body: EmbeddingRequest, served: Served, limits: Limits) -> dict[str, Any]:
    """The vectors that were asked for; called in a thread when its turn has come, since it computes."""
    tokenizer = served.model.tokenizer
    if tokenizer is None:
        raise UnsupportedByModelError("{name} reads no text", name=served.name)
    given = body.inputs
    if not given or len(given) > limits.prompts:
        raise RefusedError(
            "{n:,} texts; give 1 to {prompts:,} at a time", param="input", n=len(given), prompts=limits.prompts
        )
    if sum(map(len, given)) > limits.prompt_characters:
        raise RefusedError(
            "the texts are longer than {prompt_characters:,} together",
            param="input",
            prompt_characters=limits.prompt_characters,
        )
    texts = [each if isinstance(each, str) else tokenizer.decode(each) for each in given]
    if not all(map(str.strip, texts)):
        raise RefusedError("a text is empty, and has no direction; leave it out", param="input")
    vectors = served.model.embed(texts)
    if not vectors.any(axis=1).all():
        raise RefusedError("a text has no letters to be read, and so no direction; leave it out", param="input")
    width = vectors.shape[1]
    if body.dimensions not in (None, width):
        raise RefusedError(
            "this model's vectors have {width:,} numbers; leave dimensions out", param="dimensions", width=width
        )
    count = sum(len(ids) for ids in tokenizer.encode_batch(texts))
    data = [
        {"object": "embedding", "index": place, "embedding": _written(vector, body.encoding_format)}
        for place, vector in enumerate(vectors.astype(np.float32))
    ]
    usage = {"prompt_tokens": count, "total_tokens": count}
    return {"object": "list", "data": data, "model": served.name, "usage": usage}


def _written(vector: Any, encoding: str) -> list[float] | str:
    return base64.b64encode(vector.tobytes()).decode() if encoding == "base64" else vector.tolist()
