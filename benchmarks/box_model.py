"""The recipe of the model in the box, in stages, so that the training may happen on another machine.

python benchmarks/box_model.py text ../shared/data carry/box      plain text, a tokenizer, token shards
python benchmarks/box_model.py train carry/box carry/box/trained  one training for each entry of settings.json
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

import box_text

import kotha

VOCABULARY = 8192


def write_text(data: Path, out: Path) -> None:
    """Plain text of each part, a tokenizer of the training part, and the shards of both."""
    parts = box_text.split(box_text.documents(data))
    for part, sources in parts.items():
        for source, passages in sources.items():
            lines = (json.dumps({"text": passage, "source": source}, ensure_ascii=False) for passage in passages)
            path = out / "text" / part / f"{source}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    held_out = out / "text" / "held_out.jsonl"
    everything = sorted((out / "text" / "held_out").glob("*.jsonl"))
    held_out.write_text("".join(path.read_text(encoding="utf-8") for path in everything), encoding="utf-8")
    train = out / "text" / "train"
    tokenizer = kotha.train_tokenizer(
        [train], kind="unigram", vocab_size=VOCABULARY, out=out / "tokenizer", overwrite=True
    )
    report = kotha.prepare([train], tokenizer, out / "data", validation=held_out, overwrite=True)
    print(report)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stage", choices=["text"])
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    write_text(options.source, options.out)


if __name__ == "__main__":
    main()
