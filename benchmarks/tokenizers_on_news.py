"""Compare tokenizers on the news validation set: newly trained, bundled, plain SentencePiece, and GPT-2's pattern.

    python benchmarks/tokenizers_on_news.py ../shared/data [--sizes 8192 32100]

The tokenizers are trained on news/train and measured on news/validation. The script writes
benchmarks/results/tokenizers_on_news.json and prints a table.
"""

import argparse
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import sentencepiece
from record import save

from kotha.text.corpus.documents import read_documents
from kotha.text.tokenizer.card import COLUMNS, Card, cells, measure, train_gpt2_style
from kotha.text.tokenizer.importers import import_tokenizer
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.trainers import train

OURS = {
    "unigram": {"kind": "unigram"},
    "bpe": {"kind": "bpe"},
    "bpe, words": {"kind": "bpe", "split": "words"},
    "wordpiece": {"kind": "wordpiece"},
}
SHIPPED = {
    "SentencePiece 32k (csebuetnlp)": "csebuetnlp_banglanmt_spm32k",
    "SentencePiece 50k (BNLP)": "bnlp_spm50k",
    "WordPiece 102k (bangla-bert)": "bangla_bert_base_wordpiece102k",
}


def plain_sentencepiece(texts: list[str], size: int) -> Tokenizer:
    with tempfile.TemporaryDirectory() as folder:
        prefix = Path(folder) / "plain"
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(line for text in texts for line in text.split("\n")),
            model_prefix=str(prefix),
            vocab_size=size,
            byte_fallback=True,
            character_coverage=0.9995,
            max_sentence_length=100_000,
            minloglevel=2,
        )
        return import_tokenizer(prefix.with_suffix(".model"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[8192, 32_100])
    options = parser.parse_args()
    data = options.data
    training, validation = (
        [document.text for document in read_documents([data / "news" / f"{split}.jsonl.zst"])]
        for split in ("train", "validation")
    )
    rows: list[tuple[Card, float]] = []

    def add(name: str, tokenizer: Tokenizer, seconds: float) -> None:
        rows.append((measure(name, tokenizer, validation), seconds))
        print(" | ".join(cells(rows[-1][0])), f"| {seconds:.0f} s", file=sys.stderr)

    for size in options.sizes:
        for name, settings in OURS.items():
            start = time.perf_counter()
            add(f"kotha {name}", train(training, vocab_size=size, **settings), time.perf_counter() - start)
        for name, make in {
            "plain SentencePiece unigram": plain_sentencepiece,
            "GPT-2 pattern BPE": train_gpt2_style,
        }.items():
            start = time.perf_counter()
            add(name, make(training, size), time.perf_counter() - start)
    for name, folder in SHIPPED.items():
        if (data / "tokenizers" / folder).is_dir():
            add(name, import_tokenizer(data / "tokenizers" / folder), 0.0)
    save(
        "tokenizers_on_news",
        [{**asdict(card), "training_seconds": round(seconds, 1)} for card, seconds in rows],
        ["tokenizers", "sentencepiece", "regex"],
    )
    print("| " + " | ".join(str(title) for _, title in COLUMNS) + " |")
    print("|---" * len(COLUMNS) + "|")
    for card, _ in rows:
        print("| " + " | ".join(cells(card)) + " |")


if __name__ == "__main__":
    main()
