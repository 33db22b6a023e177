"""Time and memory of the Kneser-Ney baselines on many tokens.

    python benchmarks/ngram_speed.py [--tokens 10000000] [--vocabulary 32100] [--order 5]

The tokens are random: half are drawn from a Zipf distribution, and half are the usual successor of the preceding token,
so that longer n-grams repeat as in real text. Documents have about 300 tokens. The baselines are scored on additional
tokens, 1% of that number.
"""

import argparse
import resource
import sys
import time
from typing import Any

import numpy as np
from record import save

from kotha.text.ngram import KneserNey


def draw(n_tokens: int, vocabulary: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    ranks = np.exp(rng.random(n_tokens) * np.log(vocabulary - 1)).astype(np.int64)  # probabilities fall as 1 / rank
    usual = np.random.default_rng(0).integers(1, vocabulary, vocabulary)  # the usual successor of each token
    line = ranks.copy()
    follows = rng.random(n_tokens) < 0.5
    for _ in range(4):  # sequences of up to four usual successors
        line[1:] = np.where(follows[1:], usual[line[:-1]], ranks[1:])
    line[rng.random(n_tokens) < 1 / 300] = 0
    line[-1] = 0
    return line


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, default=10_000_000)
    parser.add_argument("--vocabulary", type=int, default=32_100)
    parser.add_argument("--order", type=int, nargs="+", default=[3, 5])
    parser.add_argument("--out", default="ngram_speed")
    arguments = parser.parse_args()
    line = draw(arguments.tokens, arguments.vocabulary, 1)
    held_out = draw(arguments.tokens // 100, arguments.vocabulary, 2)
    figures: dict[str, Any] = {"tokens": len(line), "held_out_tokens": len(held_out), "orders": []}
    for order in arguments.order:
        start = time.perf_counter()
        model = KneserNey(line, order, arguments.vocabulary, end=0)
        counted = time.perf_counter()
        loss = float(model.nats(held_out).mean())
        row = {
            "order": order,
            "count_seconds": round(counted - start, 1),
            "score_seconds": round(time.perf_counter() - counted, 2),
            "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "loss_nats": round(loss, 4),
        }
        figures["orders"].append(row)
        print(row, file=sys.stderr)
    save(arguments.out, figures, ["numpy"])


if __name__ == "__main__":
    main()
