"""Models whose activations overflow: every kind of score is an error that names the model, and no number is shown."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import kotha
from kotha.api.model import LanguageModel
from kotha.artifacts import model_folder
from kotha.cli.main import main
from kotha.errors import NotFiniteError
from kotha.evaluation.doctor.curve import read_curve

FIXTURES = Path(__file__).parents[1] / "format_fixtures" / "0.1.0"
TEXTS = {"gpt": "stories.jsonl", "bert": "stories.jsonl", "classifier": "classes.csv", "seq2seq": "pairs.tsv"}


def enlarged(folder: Path, family: str, by: float = 1e30) -> Path:
    """Save a model of a family with all its matrices multiplied."""
    bundle = model_folder.load(FIXTURES / "runs" / family)
    with torch.no_grad():
        for parameter in bundle.model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(by)
    return model_folder.save(folder / family, bundle.model, bundle.tokenizer)


@pytest.mark.parametrize("family", [*TEXTS, "vit"])
def test_no_family_gets_a_score(family: str, tmp_path: Path) -> None:
    data = FIXTURES / TEXTS.get(family, "digits.npz")
    kotha.load(enlarged(tmp_path, family, by=1.5)).evaluate(data)
    lm = kotha.load(enlarged(tmp_path / "large", family))
    with pytest.raises(NotFiniteError, match=rf"{family}: activations overflow or are NaN"):
        lm.evaluate(data)


USES: dict[str, Callable[[LanguageModel], object]] = {
    "gpt": lambda lm: lm.generate("মা", tokens=3),
    "bert": lambda lm: lm.fill("মা [MASK] যায়।"),
    "classifier": lambda lm: lm.classify("মা বাজারে যায়।"),
    "seq2seq": lambda lm: lm.translate("mother"),
}


@pytest.mark.parametrize("family", USES)
def test_no_family_gives_an_answer(family: str, tmp_path: Path) -> None:
    with pytest.raises(NotFiniteError, match="the weights are damaged or too large; use an earlier checkpoint"):
        USES[family](kotha.load(enlarged(tmp_path, family)))


def test_the_commands_name_the_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, text = enlarged(tmp_path, "gpt"), str(FIXTURES / "stories.jsonl")
    assert main(["compare", str(FIXTURES / "runs" / "gpt"), str(folder), "--text", text]) == 1
    assert f"kotha: {folder}: activations overflow or are NaN" in capsys.readouterr().err
    assert main(["generate", str(folder), "মা"]) == 1
    assert "activations overflow or are NaN" in capsys.readouterr().err


@pytest.mark.parametrize("lost", [{"loss_nats": None}, {"validation": {"loss_nats": None}}])
def test_the_doctor_sees_a_loss_that_is_no_number(lost: dict[str, object]) -> None:
    metrics = [{"step": 1, "loss_nats": 5.0}, {"step": 2, "validation": {"loss_nats": 4.0}}, {"step": 3, **lost}]
    assert read_curve({}, metrics).lost == 3
    assert read_curve({}, metrics[:2]).lost is None
