"""Regenerate the seeds, small files of every kind that Kotha writes: ``python -m tests.fuzz.make_seeds``.

The seeds are created in a folder and stored in one archive, which takes a quarter of the space because most files are
similar.
"""

import gzip
import io
import itertools
import json
import random
import re
import shutil
import struct
import zipfile
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import numpy as np
import torch
import zstandard
from safetensors.torch import save_file
from tests.fuzz.targets import ARCHIVE

from kotha.artifacts import model_folder as bundle
from kotha.cli.main import main
from kotha.evaluation.judge.session import CHOICES, JudgingSession
from kotha.export.huggingface.export import write_hf
from kotha.model.config import BERTConfig, GPTConfig, ModelConfig, Seq2SeqConfig, ViTConfig, config_from_dict
from kotha.model.family import build
from kotha.model.lora import add_low_rank, fully_trained_prefixes
from kotha.model.presets import MODERN
from kotha.retrieval.documents import IndexOptions
from kotha.retrieval.index import update
from kotha.retrieval.sqlite_store import SqliteStore
from kotha.server.app import make_app
from kotha.text.prepare import PrepareOptions, prepare
from kotha.text.tokenizer.chat import ChatTemplate
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.trainers import train
from kotha.training.adapter import base_fingerprint, save_adapter

TEXTS = ["নদীর ধারে ক্ষেত। মা ঘরে যায়, ১২ টাকা।", "The river, 12 fields.", "ক্ষেতের পাশে নদী, নদীর পাশে ঘর।"]
SEEDS = Path("build") / "seeds"
# The model for each kind of request, by a part of its path; and an id like those of files and jobs.
_DOES = {"classify": "classifier", "fill": "bert", "translate": "seq2seq", "alignment": "seq2seq"}
_MARK = "0123456789ab"
SIZES: dict[str, Any] = {"n_layers": 1, "d_model": 8, "n_heads": 2}


def place(target: str, name: str) -> Path:
    """Create the empty folder of a seed."""
    folder = SEEDS / target / name
    folder.mkdir(parents=True)
    return folder


def tokenizers() -> dict[str, Tokenizer]:
    """Make a tokenizer of each kind, as small as possible."""
    found = {kind: train(TEXTS, kind, 420) for kind in ("bpe", "unigram", "wordpiece", "char")}
    for name, tokenizer in found.items():
        tokenizer.save(place("tokenizer", name))
    return found


def foreign_tokenizers(known: dict[str, Tokenizer]) -> None:
    """Make both kinds of SentencePiece model, a WordPiece vocabulary, and GPT-2's two files."""
    for kind in ("unigram", "bpe"):
        folder = place("foreign_tokenizer", kind)
        (folder / "spiece.model").write_bytes(_sentencepiece(kind))
        (folder / "tokenizer_config.json").write_text('{"extra_ids": 2, "tokenizer_class": "T5Tokenizer"}')
    folder = place("foreign_tokenizer", "wordpiece")
    (folder / "vocab.txt").write_text("\n".join(known["wordpiece"].pieces), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true, "strip_accents": null}')
    folder = place("foreign_tokenizer", "merges")
    model = json.loads(known["bpe"].backend.to_str())["model"]
    (folder / "vocab.json").write_text(json.dumps(model["vocab"]))
    merges = [" ".join(pair) if isinstance(pair, list) else pair for pair in model["merges"]]
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges]), encoding="utf-8")


def _sentencepiece(kind: str) -> bytes:
    import sentencepiece

    held = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS), model_writer=held, model_type=kind, vocab_size=48, hard_vocab_limit=False,
        normalization_rule_name="identity", minloglevel=9, user_defined_symbols=["<x>"],
    )  # fmt: skip
    return held.getvalue()


def streams(known: dict[str, Tokenizer]) -> None:
    """Make token ids from texts and random ids for each tokenizer: the tokenizer's number, then two bytes per token."""
    rng = random.Random(0)
    for number, name in enumerate(sorted(known)):
        for text in TEXTS[:1]:
            ids = [token.to_bytes(2, "big") for token in known[name].encode(text)]
            (place("stream", f"{name}-text") / "tokens").write_bytes(bytes([number]) + b"".join(ids))
        (place("stream", f"{name}-any") / "tokens").write_bytes(bytes([number]) + rng.randbytes(64))


def small(config: ModelConfig, tokenizer: Tokenizer | None) -> bundle.Bundle:
    """Return an untrained model."""
    torch.manual_seed(0)
    return bundle.Bundle(build(config).eval(), tokenizer)


def models(known: dict[str, Tokenizer]) -> dict[str, bundle.Bundle]:
    """A model of each family."""
    tokenizer, pieces = known["char"], known["wordpiece"]
    text: dict[str, Any] = {**SIZES, "vocab_size": tokenizer.vocab_size, "context_length": 16}
    found = {
        "plain": small(GPTConfig(**text), tokenizer),
        "modern": small(GPTConfig(**{**text, **MODERN, "n_kv_heads": 1}), tokenizer),
        "bert": small(BERTConfig(**{**text, "vocab_size": pieces.vocab_size}), pieces),
        "seq2seq": small(Seq2SeqConfig(**text), tokenizer),
        "vit": small(ViTConfig(**SIZES, image_size=8, patch_size=4, n_channels=1, n_classes=3), None),
    }
    labels = {"family": "gpt-classifier", "labels": ["হ্যাঁ", "না"]}
    found["classifier"] = small(config_from_dict(found["plain"].config.to_dict() | labels), tokenizer)
    for name, each in found.items():
        taught = ChatTemplate.of(tokenizer) if name == "plain" else None
        stored: Any = {"modern": "int8", "vit": "bfloat16"}.get(name)
        bundle.save(SEEDS / "model" / name, each.model, each.tokenizer, stored=stored, chat=taught)
    return found


def adapters(known: dict[str, bundle.Bundle]) -> None:
    """Make LoRA adapters for generation, conversation and classification."""
    base = base_fingerprint(known["plain"].model)
    for name, of, chat in (("writes", "plain", False), ("turns", "plain", True), ("classes", "classifier", False)):
        model = small(known[of].config, None).model
        add_low_rank(model, 2, 4.0, fully_trained_prefixes(model.config.family))
        taught = ChatTemplate.of(known["plain"].tokenizer) if chat else None
        save_adapter(SEEDS / "adapter" / name, model, 2, 4.0, base, taught)


def judgings() -> None:
    """Make judging sessions: one with judgements by two judges, and one without judgements."""
    written = {"ছোট": ["নদীর ধারে", "ক্ষেত।"], "large": ["পাশে ঘর", "মা যায়।"], "third": ["x", "y"]}
    for name, judges in (("judged", ("ক", "b")), ("new", ())):
        (SEEDS / "judging").mkdir(exist_ok=True)
        judging = JudgingSession.start(SEEDS / "judging" / name, TEXTS[:2], written, about={"seed": 0})
        for judge in judges:
            for pair, choice in zip(judging.left_for(judge), itertools.cycle(CHOICES)):
                judging.record(judge, pair.id, choice)


def settings() -> None:
    """Files and arguments that configure a training run."""
    (place("settings", "toml") / "it.toml").write_text(
        'steps = 100\nlearning_rate = 1e-3\nprecision = "float32"\nn_layers = 2\nd_model = 32\nn_heads = 4\n'
        "qk_norm = true\nmicro_batch_size = 2\nbatch_size = 8\nlora = 4\ndropout = 0.1\nseed = 7\n"
    )
    (place("settings", "words") / "it").write_text("steps=100 batch_size=8 warmup_steps=3 patience=none seed=3")
    (place("settings", "space") / "it").write_text("learning_rate=1e-4..1e-2 batch_size=8,16 size=2x96,4x192 seed=1..9")


def hugging_face(known: dict[str, bundle.Bundle]) -> None:
    """Make the same models as Hugging Face folders, one in shards and one as a pickle, and weights without a config."""
    for name in ("plain", "modern", "bert", "vit", "classifier"):
        folder = SEEDS / "hugging_face" / name
        write_hf(known[name], folder)
        (folder / "README.md").unlink()
    weights = {"a": torch.zeros(2, 3), "b": torch.ones(4, dtype=torch.float16), "c": torch.tensor(7)}
    save_file(weights, place("weights", "one") / "model.safetensors", {"format": "pt"})
    torch.save(weights, place("weights", "pickle") / "pytorch_model.bin")
    folder = place("weights", "shards")
    for number, (name, tensor) in enumerate(weights.items()):
        save_file({name: tensor}, folder / f"model-{number}.safetensors")
    placed = {name: f"model-{number}.safetensors" for number, name in enumerate(weights)}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": placed}))


def data_and_run(tokenizer: Tokenizer) -> None:
    """A data folder, and the folder of a short run on it."""
    data, run = SEEDS / "data" / "plain", SEEDS / "run" / "plain"
    with TemporaryDirectory() as place:
        corpus = Path(place) / "s.jsonl"
        assert main(["corpus", "stories", "--documents", "12", "--out", str(corpus)]) == 0
        prepare([corpus], tokenizer, data, PrepareOptions(validation=0.2))
    sizes = [f"{name}={value}" for name, value in {**SIZES, "context_length": 16, "warmup_steps": 1}.items()]
    often = ["batch_size=2", "micro_batch_size=2", "evaluate_every=2", "evaluate_tokens=64", "precision=float32"]
    words = ["train", str(data), "--out", str(run), "--preset", "pocket", "--recipe", "modern", "--steps", "4"]
    assert main([*words, "--checkpoint-every", "2", "--set", *sizes, *often]) == 0
    (run / "report.html").unlink()
    shutil.rmtree(run / "checkpoints" / "step-00000002")


def pictures() -> None:
    """An image in each format, and archives of arrays."""
    from PIL import Image

    pixels = np.arange(192, dtype=np.uint8).reshape(8, 8, 3)
    for ending, mode in (("png", "RGB"), ("jpg", "RGB"), ("bmp", "RGB"), ("gif", "P"), ("webp", "RGB"), ("tif", "L")):
        Image.fromarray(pixels).convert(mode).save(place("pictures", ending) / f"it.{ending}")
    Image.fromarray(pixels).convert("P").save(place("pictures", "palette") / "it.png", interlace=1)
    np.save(place("pictures", "npy") / "it.npy", pixels[..., 0])
    (place("pictures", "json") / "it.json").write_text(json.dumps(pixels[..., 0].tolist()))
    (place("pictures", "p5") / "it.pgm").write_bytes(b"P5\n# grey\n8 8\n255\n" + pixels[..., 0].tobytes())
    numbers = " ".join(map(str, pixels[..., 0].ravel()))
    (place("pictures", "p2") / "it.pgm").write_text(f"P2 8 8 255\n{numbers}\n")
    images, labels = np.stack([pixels[..., 0]] * 3), np.array(["ক", "খ", "ক"])
    np.savez(place("pictures", "npz") / "it.npz", images=images, labels=labels)
    parts = {"x_train": images / 255.0, "y_train": np.arange(3), "x_test": images, "y_test": np.arange(3)[:, None]}
    np.savez(place("pictures", "parts") / "it.npz", **parts)


def corpora() -> None:
    """A corpus in each format; tables with labels, pairs and conversations."""
    import pyarrow
    import pyarrow.parquet

    rows = [{"text": text, "label": "good" if place else "bad"} for place, text in enumerate(TEXTS)] * 2
    talk = [{"role": "user", "content": TEXTS[0]}, {"role": "assistant", "content": TEXTS[1]}]
    table = "text,label\r\n" + "".join(f'"{row["text"]}",{row["label"]}\r\n' for row in rows)
    written = {
        "it.txt": "\n".join(TEXTS),
        "it.jsonl": "\n".join(json.dumps(row, ensure_ascii=False) for row in rows),
        "talk.jsonl": "\n".join(json.dumps({"messages": talk}) for _ in range(2)),
        "asked.jsonl": "\n".join(json.dumps({"instruction": text, "output": text, "input": ""}) for text in TEXTS),
        "it.csv": table,
        "it.tsv": table.replace('"', "").replace(",", "\t"),
        "pairs.tsv": "bn\ten\n" + "".join(f"{text}\t{TEXTS[1]}\n" for text in TEXTS),
    }
    for name, text in written.items():
        (place("corpus", name.replace(".", "-")) / name).write_text(text, encoding="utf-8", newline="")
    (place("corpus", "wide") / "it.csv").write_bytes(b"\xff\xfe" + table.encode("utf-16-le"))
    (place("corpus", "gz") / "it.jsonl.gz").write_bytes(gzip.compress(written["it.jsonl"].encode(), mtime=0))
    packed = zstandard.ZstdCompressor().compress(written["it.csv"].encode())
    (place("corpus", "zst") / "it.csv.zst").write_bytes(packed)
    columns = {"text": [row["text"] for row in rows], "label": [1, 2, None] * 2}
    for name, how in (("parquet", "none"), ("parquet-packed", "zstd")):
        pyarrow.parquet.write_table(pyarrow.table(columns), place("corpus", name) / "it.parquet", compression=how)


def documents() -> None:
    """Make documents in formats that only the index reads, an index, and files from other programs."""
    body = "\n\n".join(f"# {text[:4]}\n\n{text} [link](x)" for text in TEXTS)
    (place("documents", "md") / "it.md").write_text(body, encoding="utf-8")
    page = "".join(f"<h1>{text[:4]}</h1><p>{text}&nbsp;<b>&#2453;</b></p>" for text in TEXTS)
    page = f"<!doctype html><html><head><meta charset=utf-8><style>p {{}}</style></head><body>{page}</body></html>"
    (place("documents", "html") / "it.html").write_text(page, encoding="utf-8")
    (place("documents", "pdf") / "it.pdf").write_bytes(_pdf())
    with TemporaryDirectory() as folder:
        (Path(folder) / "it.md").write_text(body, encoding="utf-8")
        with closing(SqliteStore(place("index", "plain") / "index.db", write=True)) as store:
            update(store, [Path(folder) / "it.md"], IndexOptions())
    gguf = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 4) + b"name" + struct.pack("<IQ", 8, 1) + b"x"
    (place("named", "gguf") / "model.gguf").write_bytes(gguf)
    (place("named", "onnx") / "model.onnx").write_bytes(b"\x08\x08\x12\x07pytorch:\x00")
    (place("named", "config") / "config.json").write_text('{"model_type": "gpt2", "format": "kotha-model"}')


def _pdf() -> bytes:
    """Return a handwritten PDF with one line of text."""
    drawn = b"BT /F1 12 Tf 20 100 Td (A river and its fields) Tj ET"
    things = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents 4 0 R "
        b"/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        b"<< /Length %d >> stream\n%s\nendstream" % (len(drawn), drawn),
    ]
    held, starts = b"%PDF-1.4\n", []
    for number, thing in enumerate(things, start=1):
        starts.append(len(held))
        held += b"%d 0 obj\n%s\nendobj\n" % (number, thing)
    table = b"".join(b"%010d 00000 n \n" % start for start in starts)
    trailer = b"trailer << /Size 5 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % len(held)
    return held + b"xref\n0 5\n0000000000 65535 f \n" + table + trailer


# -- requests ---------------------------------------------------------------------------------------------------------


def requests() -> None:
    """Make two requests to each route of the server: with all parameters of its schema, and with the required ones."""
    result = make_app([str(SEEDS / "model" / "plain")], device="cpu").openapi()
    for path, ways in result["paths"].items():
        for method, way in ways.items():
            if method not in ("get", "post", "put", "delete", "patch"):
                continue
            content = way.get("requestBody", {}).get("content", {})
            schema = content.get("application/json", {}).get("schema")
            for whole in (True, False) if schema else (True,):
                body = b""
                if schema:
                    fields = _resolved(schema, result).get("properties", {})
                    there = {key: value for key, value in _asked_there(path, whole).items() if key in fields}
                    body = json.dumps(_example(schema, result, whole) | there, ensure_ascii=False).encode()
                name = f"{method}-{re.sub('[/{}-]+', '-', path).strip('-') or 'root'}" + "-whole" * (
                    whole and bool(body)
                )
                (place("requests", name) / "it.http").write_bytes(_request(method, path, way, result, body))


def _request(method: str, path: str, way: dict[str, Any], told: dict[str, Any], body: bytes) -> bytes:
    asked = [each for each in way.get("parameters", ()) if each["in"] == "query"]
    query = "&".join(f"{each['name']}={_example(each['schema'], told, True)}" for each in asked)
    address = path.replace("{name}", "plain").replace("{id}", _MARK).replace("{use}", "classify")
    address = address.replace("{", "").replace("}", "") + (f"?{query}" if query else "")
    head = f"{method.upper()} {quote(address, safe='/?&=')} HTTP/1.1\r\nHost: localhost\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _asked_there(path: str, whole: bool) -> dict[str, Any]:
    """Return values that the schema does not describe: the name of a suitable model, and a suitable text."""
    model = next((model for part, model in _DOES.items() if part in path), "plain")
    known: dict[str, Any] = {"model": model, "place": "blocks.0.output", "heads": ["blocks.0.attention.0"]}
    if whole:
        return known
    few: dict[str, dict[str, Any]] = {
        "/v1/completions": {"prompt": "নদী", "max_tokens": 3, "stream": True},
        "/v1/chat/completions": {"messages": [{"role": "user", "content": "নদী"}], "max_tokens": 3},
        "/v1/embeddings": {"input": ["নদী", "ঘর"]},
        "/api/write": {"prompt": "নদী", "max_tokens": 3},
        "/api/fill": {"text": "নদীর [MASK] ঘর"},
        "/api/classify": {"texts": ["নদী", "ঘর"]},
        "/api/judgings": {"models": ["plain", "modern"], "prompts": ["নদী"]},
    }
    return {"text": "নদীর ধারে"} | known | few.get(path, {})


def _resolved(schema: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in schema:
        return schema
    found: dict[str, Any] = told["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return found


def _example(schema: dict[str, Any], told: dict[str, Any], whole: bool, depth: int = 0, name: str = "") -> Any:
    """Return a value that a schema allows, approximately; without ``whole``, only the required parts."""
    schema = _resolved(schema, told)
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return _example(schema[several][0], told, whole, depth + 1, name)
    if "const" in schema or "enum" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    match schema.get("type"):
        case "object":
            wanted, must = schema.get("properties", {}), schema.get("required", ())
            chosen = {key: each for key, each in wanted.items() if (whole and depth < 2) or key in must}
            return {key: _example(each, told, whole, depth + 1, key) for key, each in chosen.items() if depth < 4}
        case "array":
            return [_example(schema.get("items", {}), told, whole, depth + 1, name)]
        case "integer" | "number":
            return schema.get("default") or schema.get("minimum", 1)
        case "boolean":
            return bool(schema.get("default"))
        case "string":
            known = {"index": "index", "role": "user"}
            return _MARK if "pattern" in schema else known.get(name, "নদীর ধারে")
    return None


def main_() -> None:
    """Make all seeds."""
    shutil.rmtree(SEEDS, ignore_errors=True)
    known = tokenizers()
    foreign_tokenizers(known)
    streams(known)
    built = models(known)
    hugging_face(built)
    adapters(built)
    judgings()
    settings()
    data_and_run(known["char"])
    pictures()
    corpora()
    documents()
    requests()
    files = [file for file in sorted(SEEDS.rglob("*")) if file.is_file()]
    with zipfile.ZipFile(ARCHIVE, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for file in files:
            entry = zipfile.ZipInfo(str(file.relative_to(SEEDS)))  # no timestamp: same seeds, same bytes
            archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED, 9)
    print(f"{len(files)} files, {ARCHIVE.stat().st_size:,} bytes in {ARCHIVE}")


if __name__ == "__main__":
    main_()
