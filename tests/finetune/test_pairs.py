"""Training a translation model, from a table of pairs to a model folder."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.finetune.conftest import stopped_and_resumed
from tests.prepared import made_up_pairs, write_pairs

import kotha
from kotha.artifacts import model_folder as bundle
from kotha.errors import CheckpointError, ConfigError, DataError, KothaError, UsageError
from kotha.finetune.pairs import PAGE, TranslatePairs
from kotha.model.family import build
from kotha.model.presets import preset

SIZES: dict[str, Any] = {"d_model": 32, "n_heads": 2, "d_ff": 64, "n_layers": 1, "vocab_size": 700}
QUICK: dict[str, Any] = {**SIZES, "preset": "pocket-seq2seq", "batch_size": 8, "evaluate_every": 3, "steps": 6}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pairs(tmp_path_factory.mktemp("pairs") / "pairs.tsv", 300)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, table: Path) -> kotha.Run:
    """A run long enough to reach a good score."""
    long = {**QUICK, "steps": 120, "batch_size": 32, "evaluate_every": 40, "learning_rate": 1e-2, "dropout": 0.0}
    return kotha.train(table, out=tmp_path_factory.mktemp("runs") / "run", reverse=True, **long)


def test_training_reaches_a_good_score_and_reports_it(run: kotha.Run) -> None:
    summary = run.summary
    assert summary["chrf"] > 50 and summary["sentences"] == 15 and summary["seen"] == 0
    assert "tok:13a" in summary["bleu_signature"] and "nw:2" in summary["chrf_signature"]
    assert summary["validation"]["accuracy"] > 0.5 and summary["tokens"] > summary["validation"]["tokens"]
    assert summary["fields"] == ["bn", "en"]
    assert summary["chrf"] > summary["baselines"]["nearest neighbour"]["chrf"] > 0
    about = json.loads((run.path / "config.json").read_text(encoding="utf-8"))
    assert about["fields"] == {"source": "bn", "target": "en", "guessed": True} and about["task"] == "translation"
    assert about["training"]["label_smoothing"] == 0.1
    page = (run.path / PAGE).read_text(encoding="utf-8")
    assert summary["bleu_signature"] in page and TranslatePairs().read_parts(run.path).test.sources[0] in page
    assert (run.path / "report.html").is_file()
    samples = [row["sample"] for row in run.metrics if row.get("sample")]
    assert samples and all(" → " in sample for sample in samples)


def test_it_translates_with_an_alignment(run: kotha.Run) -> None:
    test = TranslatePairs().read_parts(run.path).test
    source, target = test.sources[0], test.targets[0]
    assert set(run.model.translate(source).split()) & set(target.split())
    view = run.model.alignment(source, target=target)
    found = view.found
    assert found.weights.shape == (len(found.written), len(found.source))
    assert torch.allclose(found.weights.sum(-1), torch.ones(len(found.written)), atol=1e-5)
    assert len(found.strongest) == len(found.written) and found.layer == 0
    assert f'"written": [{{"text": "{found.written[0]}"' in view.html and '"layer": 0' in view.html
    own = run.model.alignment(source).found
    assert run.model.tokenizer is not None
    ids = [piece.id for piece in own.pieces["written"] if piece.id is not None]
    assert run.model.tokenizer.decode(ids) == run.model.translate(source), "what it wrote, piece by piece"
    with pytest.raises(UsageError, match=r"this model has no layer 'decoder\.1'; did you mean 'decoder\.0'"):
        run.model.alignment(source, layer=1)


def test_the_tokenizer_is_trained_on_both_sides_of_training_pairs_only(run: kotha.Run, table: Path) -> None:
    tokenizer = run.model.tokenizer
    assert tokenizer is not None
    for text in ("আমি ভাত খাই", "river you eat"):
        assert tokenizer.decode(tokenizer.encode(text)) == text
    parts = TranslatePairs().read_parts(run.path)
    sources = [set(part.sources) for part in (parts.train, parts.validation, parts.test)]
    assert not sources[0] & sources[1] and not sources[0] & sources[2] and not sources[1] & sources[2]
    assert sum(map(len, sources)) == 300


def test_evaluation_uses_the_trained_direction_and_counts_seen_pairs(run: kotha.Run, tmp_path: Path) -> None:
    few = write_pairs(tmp_path / "few.tsv", 10)
    score = run.model.evaluate(few)
    assert score.fields == ("bn", "en") and score.sentences == 10
    learned = set(TranslatePairs().read_parts(run.path).train.sources)
    assert score.seen == sum(source in learned for _, source in made_up_pairs(10))
    assert run.model.evaluate(few, pair=("en", "bn")).fields == ("en", "bn")


def test_a_resumed_run_equals_an_uninterrupted_one(table: Path, tmp_path: Path) -> None:
    again = stopped_and_resumed(partial(kotha.train, table, **QUICK), partial(kotha.train, table), tmp_path)
    whole = kotha.Run(tmp_path / "whole")
    for figure in ("chrf", "bleu", "fields"):
        assert whole.summary[figure] == again.summary[figure]


def test_training_starts_from_another_translation_model(run: kotha.Run, table: Path, tmp_path: Path) -> None:
    given = {name: value for name, value in QUICK.items() if name not in (*SIZES, "preset")}
    again = kotha.train(table, out=tmp_path / "run", start=run, reverse=True, **given)
    assert again.model.tokenizer is not None and run.model.tokenizer is not None
    assert again.model.tokenizer.fingerprint == run.model.tokenizer.fingerprint
    assert again.metrics[0]["loss_nats"] < 3, "it begins with what it knew"


def test_given_parts_tokenizer_and_recipe_are_used(run: kotha.Run, tmp_path: Path) -> None:
    data = write_pairs(tmp_path / "a.tsv", 60)
    held = tmp_path / "b.tsv"
    held.write_text("en\tbn\n" + "".join("\t".join(row) + "\n" for row in made_up_pairs(60)[40:]), encoding="utf-8")
    made = kotha.train(data, out=tmp_path / "run", validation=held, test=held, tokenizer=run.model.tokenizer, **QUICK)
    parts = TranslatePairs().read_parts(made.path)
    assert len(parts.test) == len(parts.validation) == 20 and len(parts.train) == 40
    assert made.model.config.vocab_size == run.model.tokenizer.vocab_size  # type: ignore[union-attr, attr-defined]


def test_a_run_with_a_time_budget(table: Path, tmp_path: Path) -> None:
    given = {name: value for name, value in QUICK.items() if name not in ("steps", "evaluate_every")}
    made = kotha.train(table, out=tmp_path / "run", minutes=0.01, **given)
    assert made.summary["steps"] >= 8


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "", "the file is empty"),
        ("a.tsv", "en\none\n", "has fewer than two columns"),
        ("a.jsonl", '{"text": "একটি"}\n', "has fewer than two columns"),
        ("a.tsv", "en\tbn\n", "contains no examples"),
        ("a.tsv", "en\tbn\none\tএক\ntwo\n", "the row has 1 cells, but the first row has 2"),
        ("a.tsv", "en\tbn\none\tএক\ntwo\t\n", "line 3: the field 'bn' is empty; fix the input"),
        ("a.tsv", "en\tbn\none\tএক\n", "1 example cannot be split"),
    ],
)
def test_bad_pairs_are_rejected_and_leave_no_files(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(KothaError, match=message):
        kotha.train(tmp_path / name, out=tmp_path / "run", **QUICK)
    assert not (tmp_path / "run").exists()


def test_pairs_longer_than_the_context_are_rejected(table: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="none of the 270 training examples can be used"):
        kotha.train(table, out=tmp_path / "run", context_length=2, **QUICK)
    assert not (tmp_path / "run").exists()


def test_other_families_and_settings_are_rejected(run: kotha.Run, table: Path, tmp_path: Path) -> None:
    gpt = bundle.save(tmp_path / "gpt", build(preset("mini")))
    out = tmp_path / "run"
    with pytest.raises(ConfigError, match="gpt is a gpt model, but pairs of texts require a seq2seq"):
        kotha.train(table, out=out, start=gpt, steps=2)
    with pytest.raises(
        ConfigError, match="pocket is a gpt model, but pairs of texts require a seq2seq model; use preset="
    ):
        kotha.train(table, out=out, preset="pocket", steps=2)
    with pytest.raises(UsageError, match="for a table of pairs, add a translation preset instead"):
        kotha.train(table, out=out)
    with pytest.raises(ConfigError, match="class_weights applies only to text and image classifiers"):
        kotha.train(table, out=out, **QUICK, class_weights="balanced")
    with pytest.raises(UsageError, match="lora=4 adapts the weights of a trained model"):
        kotha.train(table, out=out, **QUICK, lora=4)
    with pytest.raises(UsageError, match="reverse applies only to a table of pairs"):
        kotha.train(tmp_path, out=out, reverse=True)
    assert not out.exists()
    with pytest.raises(CheckpointError, match="contains a run; resume it with resume=True"):
        kotha.train(table, out=run.path, **QUICK)
    with pytest.raises(ConfigError, match="a resumed run keeps its model"):
        kotha.train(table, out=run.path, resume=True, d_model=64)
