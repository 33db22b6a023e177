"""`kotha evaluate`, `kotha doctor` and `kotha compare` as a user types them."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from kotha.artifacts import model_folder as bundle
from kotha.cli.main import main
from kotha.model.family import build
from kotha.model.presets import preset
from kotha.text.tokenizer.tokenizer import Tokenizer

SMALL = ["--preset", "mini", "--recipe", "classic", "--set", "batch_size=2", "--set", "precision=float32"]


@pytest.fixture(scope="module")
def made(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stories, two tokenizers, data for each, and three short runs."""
    folder = tmp_path_factory.mktemp("made")
    for shared, name in ((data.parent / "s.jsonl", "s.jsonl"), (data.parent / "tok", "tok-a"), (data, "data-a")):
        (folder / name).symlink_to(shared)
    stories, tokenizer = str(folder / "s.jsonl"), str(folder / "tok-b")
    assert main(["tokenizer", "train", stories, "--vocab-size", "500", "--out", tokenizer]) == 0
    assert main(["prepare", stories, "--tokenizer", tokenizer, "--out", str(folder / "data-b")]) == 0
    for run, name, steps in (("one", "a", "6"), ("two", "a", "4"), ("three", "b", "4")):
        settings = [*SMALL, "--steps", steps, "--set", "evaluate_every=2"]
        assert main(["train", str(folder / f"data-{name}"), "--out", str(folder / run), *settings]) == 0
    return folder


def answer(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    capsys.readouterr()
    assert main([str(each) for each in [*arguments, "--json"]]) == 0
    return json.loads(capsys.readouterr().out)


def said(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    capsys.readouterr()
    assert main([str(each) for each in arguments]) == code
    captured = capsys.readouterr()
    return captured.out if code == 0 else captured.err


# -- evaluate ---------------------------------------------------------------------------------------------------------


def test_a_run_on_its_validation_split_with_baselines(capsys, made: Path) -> None:
    found = answer(capsys, "evaluate", made / "one", made / "data-a")
    keys = {
        "loss_nats",
        "perplexity",
        "bits_per_byte",
        "bits_per_character",
        "tokens",
        "context",
        "stride",
        "tokenizer",
    }
    assert keys <= found.keys()
    assert (found["context"], found["stride"]) == (4, 2)
    config = json.loads((made / "one" / "config.json").read_text())
    assert found["tokenizer"] == config["data"]["tokenizer"]
    rows = found["baselines"]
    assert list(rows) == ["uniform", "unigram", "3-gram", "5-gram"]
    assert rows["unigram"]["loss_nats"] == pytest.approx(config["references"]["unigram"])
    assert rows["uniform"]["perplexity"] == pytest.approx(700)
    assert abs(found["loss_nats"] - math.log(700)) < 0.5, "almost untrained"


def test_the_model_folder_and_other_windows(capsys, made: Path) -> None:
    whole = answer(capsys, "evaluate", made / "one", made / "s.jsonl", "--baselines", "none")
    assert whole["baselines"] == {}
    assert whole["documents"] == 60
    model = answer(capsys, "evaluate", made / "one" / "best", made / "s.jsonl", "--baselines", made / "data-a")
    assert model["loss_nats"] == whole["loss_nats"]
    assert "5-gram" in model["baselines"]
    apart = answer(capsys, "evaluate", made / "one" / "best", made / "s.jsonl", "--context", "2", "--stride", "2")
    assert (apart["context"], apart["stride"]) == (2, 2)
    assert apart["loss_nats"] != whole["loss_nats"]


def test_the_table_explains_its_figures(capsys, made: Path, tmp_path: Path) -> None:
    out = said(capsys, "evaluate", made / "one", made / "data-a")
    assert all(name in out for name in ("bits per byte", "uniform", "unigram", "3-gram", "5-gram"))
    assert "context 4, stride 2; tokenizer " in out
    alone = shutil.copytree(made / "one" / "best", tmp_path / "alone")
    out = said(capsys, "evaluate", alone, made / "data-a")
    assert "relation to the training data: not known" in out
    capsys.readouterr()
    assert main(["evaluate", str(alone), str(made / "data-a")]) == 0
    assert "specify a data folder with --baselines" in capsys.readouterr().err


def test_overlap_with_the_training_data_is_reported(capsys, made: Path, tmp_path: Path) -> None:
    other, both = tmp_path / "other.jsonl", tmp_path / "both.jsonl"
    assert main(["corpus", "stories", "--documents", "20", "--seed", "9", "--out", str(other)]) == 0
    both.write_text(other.read_text("utf-8") + (made / "s.jsonl").read_text("utf-8"), encoding="utf-8")
    for text, verdict in (
        (made / "data-a", "held out"),
        (made / "s.jsonl", "95% seen in training"),
        (other, "new"),
        (both, "71% seen in training"),
    ):
        out = said(capsys, "evaluate", made / "one", text, "--baselines", "none")
        assert f"relation to the training data: {verdict}" in out


@pytest.mark.parametrize(
    ("arguments", "code", "wording"),
    [
        (["@one", "@data-b"], 1, "so the token ids do not match"),
        (["@one", "@data-a", "--baselines", "@data-b"], 1, "give the data that the model was trained on"),
        (
            ["@one", "@data-a", "--stride", "9"],
            2,
            "a stride of 9 is out of range; use a value from 1 to the context length of 4",
        ),
        (["@one", "@nowhere.txt"], 1, "nowhere.txt does not exist"),
        (["@none", "@data-a"], 1, "not found; give a run"),
        (["@one", "@data-a", "--baselines", "none", "--split", "tset"], 1, "has no split 'tset'"),
        (["@one", "@task.yaml"], 2, "task file not found"),
    ],
)
def test_usage_errors(capsys, made: Path, arguments: list[str], code: int, wording: str) -> None:
    if "@task.yaml" in arguments:
        pytest.importorskip("lm_eval", reason="lm-evaluation-harness is not installed; it is the extra `harness`")
    places = [each.replace("@", f"{made}/") for each in arguments]
    err = said(capsys, "evaluate", *places, code=code)
    assert wording in err
    assert "Traceback" not in err


def test_a_model_that_translates(capsys, made: Path, tmp_path: Path) -> None:
    tokenizer = Tokenizer.load(made / "tok-a")
    sizes = {"vocab_size": tokenizer.vocab_size, "context_length": 12, "d_model": 16, "n_heads": 2, "n_layers": 1}
    bundle.save(tmp_path / "model", build(preset("pocket-seq2seq").replace(**sizes)), tokenizer)
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("en\tbn\nI eat rice\tআমি ভাত খাই\nhe reads\tসে পড়ে\n", encoding="utf-8")
    found = answer(capsys, "evaluate", tmp_path / "model", pairs, "--pair", "en", "bn")
    assert found["sentences"] == 2
    assert "tok:13a" in found["bleu_signature"]
    assert (found["fields"], found["seen"]) == (["en", "bn"], None)
    table = said(capsys, "evaluate", tmp_path / "model", pairs)
    assert "chrF++" in table and "Translated from 'en', compared with 'bn'." in table, "guessed and reported"
    assert "on pairs of texts; give a file" in said(capsys, "evaluate", tmp_path / "model", "--text", "আজ", code=2)
    alone = tmp_path / "alone.txt"
    alone.write_text("আজ", encoding="utf-8")
    assert "no separate fields for source and target" in said(capsys, "evaluate", tmp_path / "model", alone, code=1)
    asked = answer(capsys, "evaluate", made / "one", pairs, "--pair", "en", "bn")
    assert (asked["examples"], asked["exact_match"]) == (2, 0.0), (
        "a GPT gets one field as a question, the other is the answer"
    )


# -- doctor -----------------------------------------------------------------------------------------------------------


def test_the_doctor_in_two_languages(capsys, made: Path) -> None:
    out = said(capsys, "doctor", made / "one")
    assert "After 6 steps the loss is" in out
    assert "What to try:\n  - Train for more steps." in out
    out = said(capsys, "doctor", made / "one", "--language", "bn")
    assert "6 ধাপের পরেও লস" in out, "a sentence with a formula has Latin digits"
    assert "যা করে দেখতে পারেন:" in out


def test_the_doctor_as_json(capsys, made: Path) -> None:
    found = answer(capsys, "doctor", made / "one", "--ngrams")
    (finding,) = found["findings"]
    assert finding["kind"] == "untrained"
    assert finding["evidence"]["steps"] == 6
    assert found["looked_at_data"] is True


def test_the_page_of_the_doctor(capsys, made: Path, tmp_path: Path) -> None:
    said(capsys, "doctor", made / "one", "--html", tmp_path / "word.html", "--language", "bn")
    page = (tmp_path / "word.html").read_text(encoding="utf-8")
    result = json.loads(page.split('id="data">')[1].split("</script>")[0])["data"]
    assert result["findings"] == answer(capsys, "doctor", made / "one")["findings"]
    assert result["columns"]["step"] == [1, 2, 3, 4, 5, 6] and '<html lang="bn">' in page


def test_the_doctor_without_data_and_without_a_run(capsys, made: Path, tmp_path: Path) -> None:
    run = tmp_path / "deep" / "run"
    shutil.copytree(made / "one", run)
    config = json.loads((run / "config.json").read_text())
    config["data"]["path"] = "/gone"
    (run / "config.json").write_text(json.dumps(config))
    assert answer(capsys, "doctor", run)["looked_at_data"] is False
    assert "specify its path with --data" in said(capsys, "doctor", run, "--ngrams", code=2)
    assert answer(capsys, "doctor", run, "--data", made / "data-a")["looked_at_data"] is True
    assert "no run in" in said(capsys, "doctor", tmp_path, code=1)
    (run / "metrics.jsonl").write_text("")
    assert "Nothing has been logged yet" in said(capsys, "doctor", run)


# -- compare ----------------------------------------------------------------------------------------------------------


def test_runs_of_one_tokenizer(capsys, made: Path) -> None:
    found = answer(capsys, "compare", made / "one", made / "two")
    assert [each["kind"] for each in found["reasons"]] == ["trainings"]
    first, second = found["rows"]
    assert (first["steps"], second["steps"]) == (6, 4)
    best = json.loads((made / "one" / "best.json").read_text())
    assert first["best_step"] == best["step"]
    assert first["bits_per_byte"] == best["bits_per_byte"]
    assert first["perplexity"] == pytest.approx(math.exp(best["loss_nats"]))
    assert first["tokens"] == 6 * 2 * 4
    assert "perplexity" in said(capsys, "compare", made / "one", made / "two")
    assert "2 models, by their own" in said(capsys, "compare", made / "one", made / "two")
    alone = said(capsys, "compare", made / "one")
    assert "1 model, by its own training metrics" in alone


def test_runs_of_two_tokenizers(capsys, made: Path, tmp_path: Path) -> None:
    page = tmp_path / "table.html"
    out = said(capsys, "compare", made / "one", made / "three", "--html", page)
    head = out.split("Perplexity is omitted")[0]
    assert "perplexity" not in head
    assert "bits per byte" in head
    assert "and perplexity is per token" in out
    html = page.read_text(encoding="utf-8")
    assert "Perplexity is omitted" in html
    assert 'class="best"' not in html, "scores from training name no best model"
    assert "that they have not seen" not in html


def test_runs_on_one_text(capsys, made: Path) -> None:
    runs = [made / "one", made / "three", made / "two" / "best"]
    found = answer(capsys, "compare", *runs, "--text", made / "s.jsonl")
    alone = answer(capsys, "evaluate", made / "three", made / "s.jsonl", "--baselines", "none")
    assert found["rows"][1]["bits_per_byte"] == alone["bits_per_byte"]
    assert found["rows"][2]["steps"] is None
    assert [each["kind"] for each in found["reasons"]] == ["tokenizers", "learned"], "only the tokenizers differ"
    assert [row["seen"] and row["seen"]["verdict"] for row in found["rows"]] == ["95% seen in training"] * 3
    assert found["best"] is None
    assert found["reasons"][-1]["names"][0].endswith("one")
    assert "give a text to evaluate it on" in said(capsys, "compare", made / "two" / "best", code=2)


def test_only_part_of_a_long_text_is_read_without_whole(capsys, made: Path, monkeypatch) -> None:
    monkeypatch.setattr("kotha.api.compare._MOST_BYTES", 100)
    text, run = made / "s.jsonl", made / "one"
    part, all_of_it = (answer(capsys, "compare", run, "--text", text, *more) for more in ((), ("--whole",)))
    n_documents = part["rows"][0]["measured"]["documents"]
    assert n_documents < all_of_it["rows"][0]["measured"]["documents"]
    assert part["text"] == f"the first {n_documents:,} document{'' if n_documents == 1 else 's'} of {text}"
    assert all_of_it["text"] == str(text)
