"""`kotha plan` for a named GPU, with an HTML page, and for a budget."""

import json
import shlex
from pathlib import Path

import pytest

from kotha.cli.main import main
from kotha.cli.options import from_words
from kotha.training.config import recipe
from kotha.training.plan.render import drawn_schedule
from kotha.training.request import TrainRequest, choose_settings


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "a text.txt"
    path.write_text(
        "\n\n".join(f"নদীর ধারে {each} নম্বর গ্রাম ছিল। সেখানে মা থাকতেন।" for each in range(600)), encoding="utf-8"
    )
    return path


def test_a_named_gpu_has_a_time_and_a_page(capsys, tmp_path: Path) -> None:
    page = tmp_path / "plan.html"
    command = ["plan", "--preset", "bangla-58m", "--recipe", "course", "--gpu", "h200", "--set", "steps=1000"]
    assert main([*command, "--html", str(page), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["seconds"] == pytest.approx(1000 * found["seconds_per_step"])
    assert found["tokens"] == 1000 * found["tokens_per_step"] == 8_192_000
    assert 0.2 < found["peak_share"] < 0.4
    assert found["flops"]["rule_of_thumb_per_token"] == 6 * 58_139_648
    result = json.loads(page.read_text(encoding="utf-8").split('id="data">')[1].split("</script>")[0])["data"]
    assert result["schedule"]["steps"] == 1000 and result["design"] is None
    numbers = [name for name in found if name in result and name not in ("time_source", "export_targets")]
    assert {name: result[name] for name in numbers} == {name: found[name] for name in numbers}
    assert result["time_source"]["text"] == found["time_source"], "a sentence is a message on the page"
    assert [each["details"]["text"] for each in result["export_targets"]] == [
        each["details"] for each in found["export_targets"]
    ]
    assert {"parameters", "memory_bytes", "flops", "seconds", "export_targets"} <= result.keys()
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "on NVIDIA H200" in out
    assert "attention scores" in out


def test_a_design_from_a_corpus_ends_with_valid_commands(corpus: Path, capsys) -> None:
    budget = ["--memory-gb", "8", "--minutes", "20", "--gpu", "t4", "--data", str(corpus)]
    assert main(["plan", *budget, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["memory_bytes"]["total"] <= 8e9
    assert found["seconds"] <= 20 * 60
    assert found["parameters"]["total"] == sum(found["parameters"][name] for name in _PARTS)
    tokenizer, prepare, train = (shlex.split(line) for line in found["design"]["commands"])
    assert tokenizer[:4] == ["kotha", "tokenizer", "train", str(corpus)]
    assert prepare[:3] == ["kotha", "prepare", str(corpus)]
    assert f"--vocab-size {found['config']['vocab_size']}" in " ".join(tokenizer)
    words = tuple(train[train.index("--set") + 1 :])
    changes = {**from_words(words), "steps": int(train[train.index("--steps") + 1])}
    changes["vocab_size"] = found["config"]["vocab_size"]
    choice = choose_settings(TrainRequest(preset=train[train.index("--preset") + 1], changes=changes))
    model, settings = choice.model, choice.settings
    assert settings.context_length is not None
    assert model.to_dict() == found["config"]
    assert settings.batch_size * settings.context_length == found["tokens_per_step"]


_PARTS = ("token_embedding", "segments", "positions", "attention", "feedforward", "norms", "head")


def test_the_schedule_is_drawn_from_its_own_numbers() -> None:
    settings = recipe("course", steps=2000)
    drawn = drawn_schedule(settings)
    assert (drawn["name"], drawn["warmup"], drawn["muon_rate"]) == ("cosine", 1000, None)
    assert drawn["points"][0] == [0, 0.0] and drawn["points"][-1][0] == 1999
    assert max(share for _, share in drawn["points"]) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "code", "wording"),
    [
        ([], 2, "specify what to plan"),
        (["--minutes", "5"], 2, "--data is missing"),
        (["--minutes", "-5", "--data", __file__], 2, "above 0"),
        (["--memory-gb", "nan", "--minutes", "5", "--data", __file__], 2, "above 0 and at most 1,000,000"),
        (["--memory-gb", "4", "--data", __file__], 2, "--minutes is missing"),
        (
            ["--preset", "mini", "--minutes", "5"],
            2,
            "--data is missing: a design depends on the text and the time; --preset",
        ),
        (["--minutes", "5", "--data", __file__, "--set", "steps=3"], 2, "minutes and steps both set"),
        (["--preset", "mini", "--gpu", "rtx-409"], 2, "did you mean 'rtx-4090'?"),
        (["--minutes", "5", "--data", "nowhere-at-all"], 1, "nowhere-at-all"),
        (["--preset", "mini", "--data", "nowhere-at-all"], 1, "nowhere-at-all"),
    ],
)
def test_usage_errors(capsys, arguments: list[str], code: int, wording: str) -> None:
    assert main(["plan", "--no-time", *arguments]) == code
    assert wording in capsys.readouterr().err


def test_too_little_text_is_rejected_before_timing(capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "short.txt").write_text("আমি ভাত খাই।\n\nনদীর ধারে একটি গ্রাম।\n", encoding="utf-8")
    monkeypatch.setattr("kotha.training.plan.render.use_fastest_threads", lambda: pytest.fail("it was measured"))
    assert main(["plan", "--minutes", "1", "--data", str(tmp_path / "short.txt")]) == 1
    assert "bytes to train on; provide at least" in capsys.readouterr().err
