"""A data folder with the documents of another, and more that models which learned from them have written.

    python benchmarks/own_text.py DATA OUT MODEL [MODEL …] [--tokens 6000000] [--batch 256] [--seed 0]

For a student: on the text that its teachers know by heart they only say what stands there; on text that nobody has
read they say what they think. Each model writes its share, whole documents from their first word, drawn as it says
(temperature 1, nothing cut off). The validation split is the other folder's own.
"""

import argparse
import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import kotha
from kotha.generation.answers import Request
from kotha.generation.settings import SamplingSettings
from kotha.text.shards import DTYPES, Dataset, SplitWriter, dtype_for, write_description

AS_IT_SAYS: dict[str, Any] = {"temperature": 1.0, "top_k": None, "repetition_penalty": None}
LEAST = 16  # tokens of a document


def documents(model: Path, tokens: int, batch: int, seed: int) -> Iterator[tuple[int, ...]]:
    """What a model writes, until it is so many tokens."""
    lm = kotha.load(model)
    engine, length = lm.engine(batch), lm.gpt[0].config.context_length - 1
    for turn in itertools.count():
        seeds = range(seed + turn * 4 * batch, seed + (turn + 1) * 4 * batch)
        asked = [Request(tokens=length, settings=SamplingSettings(seed=each, **AS_IT_SAYS)) for each in seeds]
        for result in engine.generate(asked):
            if result.tokens >= LEAST:
                tokens -= result.tokens
                yield result.ids
            if tokens <= 0:
                return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--tokens", type=int, default=6_000_000)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    data, began = Dataset(options.data), time.time()
    dtype = dtype_for(data.tokenizer.vocab_size)
    options.out.mkdir(parents=True)
    splits = {}
    for name in ("train", "validation"):
        with SplitWriter(options.out, name, dtype, data.tokenizer.special["eos"]) as writer:
            for document in data[name]:
                writer.add(np.asarray(document[:-1], DTYPES[dtype]), 0, 0)  # its end is written anew
            own = writer.info.tokens
            for number, model in enumerate(options.models if name == "train" else []):
                share = options.tokens // len(options.models)
                for ids in documents(model, share, options.batch, options.seed + number * 10_000_000):
                    text = data.tokenizer.decode(list(ids))
                    writer.add(np.array(ids, DTYPES[dtype]), len(text.encode()), len(text))
            splits[name] = writer.close()
        if name == "train":
            written = splits[name].tokens - own
            print(f"{own:,} tokens, and {written:,} written in {time.time() - began:.0f} s", flush=True)
        splits[name].bytes += data[name].info.bytes
        splits[name].characters += data[name].info.characters
    write_description(options.out, data.tokenizer, splits, {"written_by": [str(model) for model in options.models]})


if __name__ == "__main__":
    main()
