"""The doctor, tested on curves of real training runs and on curves described in a course."""

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kotha.artifacts.run_folder import RunFolder
from kotha.evaluation.doctor import diagnosis
from kotha.evaluation.doctor.curve import read_curve
from kotha.evaluation.doctor.diagnosis import DataFacts, Finding, advice, look_at, reassure
from kotha.i18n.catalogue import catalogue, translate
from kotha.model.config import GPTConfig
from kotha.model.presets import MODERN
from kotha.text.shards import Dataset
from kotha.text.tokenizer.trainers import train as train_tokenizer
from kotha.training.config import TrainConfig
from kotha.training.start import start_run

# Learns within seconds: one layer, and Muon with a high learning rate.
FAST: dict[str, Any] = {
    **{"steps": 120, "batch_size": 8, "warmup_steps": 10, "evaluate_every": 12, "evaluate_tokens": 1000},
    **{"optimizer": "muon", "learning_rate": 1e-2, "muon_learning_rate": 2e-2, "weight_decay": 0.1},
    **{"schedule": "stable", "floor": 0.02, "precision": "float32", "compile": "off"},
}
SMALL: dict[str, Any] = {"vocab_size": 700, "context_length": 32, "n_layers": 1, "d_model": 64, "n_heads": 4}


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., RunFolder]:
    def trained(data: Dataset, model: dict[str, Any] | None = None, **settings: Any) -> RunFolder:
        folder = RunFolder(tmp_path_factory.mktemp("runs") / "run")
        config = GPTConfig(**{**MODERN, **SMALL, **(model or {})})
        start_run(config, TrainConfig(**{**FAST, **settings}), data, folder).run()
        return folder

    return trained


def diagnose(
    config: Any, metrics: Any, references: dict[str, float] | None = None, data: DataFacts | None = None
) -> list[Finding]:
    return diagnosis.diagnose(read_curve(config, metrics, references), data)


def findings(folder: RunFolder, **more: Any) -> dict[str, Finding]:
    """Diagnose a run as if no n-grams had been counted at its start: these models are too small to beat them."""
    config = folder.about()
    config["references"] = {name: nats for name, nats in config["references"].items() if "-gram" not in name}
    return {each.kind: each for each in diagnose(config, folder.metrics(), **more)}


# -- curves of real runs ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def plenty(make_data, texts) -> Dataset:
    return make_data(texts, validation=0.05)


@pytest.fixture(scope="session")
def healthy(trained, plenty) -> RunFolder:
    return trained(plenty)


def test_a_healthy_run_has_no_alarm(healthy: RunFolder, plenty: Dataset) -> None:
    assert findings(healthy, data=look_at(plenty)) == {}
    assert look_at(plenty) == DataFacts(unknown_share=0.0, copied_share=0.0)


def test_a_healthy_run_below_the_n_gram_baseline(healthy: RunFolder) -> None:
    found = findings(healthy, references={"3-gram": 3.0, "5-gram": 2.9})
    assert list(found) == ["read-too-little"]
    assert found["read-too-little"].evidence["name"] == "3-gram", "the easiest that it does not beat"


def test_a_run_records_an_n_gram_baseline(healthy: RunFolder) -> None:
    found = diagnose(healthy.about(), healthy.metrics())
    assert [each.kind for each in found] == ["read-too-little"] and found[0].evidence["name"] == "5-gram"


def test_untrained(trained, plenty) -> None:
    found = findings(trained(plenty, steps=4, evaluate_every=2))
    assert list(found) == ["untrained"]
    assert found["untrained"].evidence["nothing"] == pytest.approx(math.log(700))
    assert "After 4 steps" in str(found["untrained"].words)
    assert "4 ধাপের পরেও" in translate(found["untrained"].words, "bn")


def test_learning_rate_too_high(trained, plenty) -> None:
    wild = {"optimizer": "adamw", "learning_rate": 3.0, "spike": None, "gradient_clip": None}
    found = findings(trained(plenty, {"norm": "layer"}, steps=60, **wild))
    assert list(found) == ["learning-rate-too-high"]
    sign = found["learning-rate-too-high"]
    assert sign.evidence["high"] > sign.evidence["low"] + 1
    assert sign.evidence["rate"] == 3.0
    assert "peak: 3)" in str(sign.advice[0])


def test_overfitting_is_reported_with_its_first_step(trained, make_data, texts) -> None:
    found = findings(trained(make_data(texts[:10], validation=0.3), steps=150, evaluate_every=15))
    assert list(found) == ["memorising"]
    evidence = found["memorising"].evidence
    assert evidence["step"] <= 60
    assert evidence["last_training"] < evidence["training"] - 1
    assert evidence["last_validation"] > evidence["validation"]
    assert f"Overfitting since step {evidence['step']}" in str(found["memorising"].words)


@pytest.fixture(scope="session")
def words_in_any_order() -> list[str]:
    """Texts in which only the rest of a word can be predicted."""
    draw = random.Random(0)
    words = ["সকাল", "বিকেল", "দুপুর", "আকাশ", "বাতাস", "নদী", "পাহাড়", "সাগর"]
    return [" ".join(draw.choices(words, k=60)) for _ in range(150)]


def test_plateau(trained, make_data, words_in_any_order) -> None:
    letters = train_tokenizer(words_in_any_order, "char", level="akshara")
    data = make_data(words_in_any_order, tokenizer=letters, validation=0.1)
    sizes = {"vocab_size": letters.vocab_size, "d_model": 16, "n_heads": 2}
    found = findings(trained(data, sizes, steps=200, evaluate_every=10, schedule="constant"))
    assert list(found) == ["plateau"]
    assert found["plateau"].severity == "notice"
    assert 50 <= found["plateau"].evidence["step"] <= 140


def test_a_leak_is_found_in_the_curve_and_in_the_data(trained, make_data, texts) -> None:
    """The held-out text occurs in the training data more often than the rest, so it is predicted better."""
    leaky = make_data([*texts[:12], *texts[:2] * 4], held_out=texts[:2], leak_threshold=None, duplicates="keep")
    run = trained(leaky, steps=160, evaluate_every=20)
    jumps = "learning-rate-too-high"  # batches of known text and of other text alternate, so the loss may seem to rise
    found = findings(run)
    assert found.keys() - {jumps} == {"leak"}
    assert found["leak"].evidence["epochs"] > 3
    proved = findings(run, data=look_at(leaky))
    assert proved.keys() - {jumps} == {"leak-copies"}, "proof is told instead of suspicion"
    assert look_at(leaky).copied_share == 1


def test_a_tokenizer_for_another_script(trained, make_data, texts, monkeypatch) -> None:
    english = train_tokenizer(["the quick brown fox jumps over the lazy dog again"] * 9, "bpe", 320)
    data = make_data(texts[:20], tokenizer=english, validation=0.2)
    run = trained(data, {"vocab_size": english.vocab_size}, steps=6, evaluate_every=3)
    monkeypatch.setattr("kotha.evaluation.doctor.curve.VOCABULARY_OF_WORDS", 300)
    found = findings(run)
    assert list(found) == ["mismatch-tokenizer", "untrained"]
    assert found["mismatch-tokenizer"].evidence["letters"] < 0.5, "three bytes a letter"


def test_validation_text_of_another_kind(trained, make_data, texts) -> None:
    data = make_data(texts, held_out=["The quick brown fox jumps over the lazy dog, and the dog sleeps on."] * 5)
    found = findings(trained(data, steps=60))
    assert "mismatch-validation" in found
    assert "before any text was repeated" in str(found["mismatch-validation"].words)


def test_unknown_tokens_are_found_in_the_data(make_data, texts) -> None:
    letters = train_tokenizer(["আমি ভাত খাই।"], "char", level="codepoint")
    facts = look_at(make_data(texts[:10], tokenizer=letters, validation=0.2))
    assert facts.unknown_share > 0.02
    assert [each.kind for each in diagnose({}, CALM, data=facts)] == ["mismatch-unknown"]


# -- described curves -------------------------------------------------------------------------------------------------


def step(number: int, loss: float | None) -> dict[str, Any]:
    return {"step": number, "loss_nats": loss, "learning_rate": 3e-4, "tokens": 8192 * number}


def evaluation(number: int, loss: float, **more: Any) -> dict[str, Any]:
    return {"step": number, "validation": {"loss_nats": loss, **more}}


CALM = [row for n in range(1, 11) for row in (step(100 * n, 8 / n**0.5), evaluation(100 * n, 8 / n**0.5))]


def told(losses: dict[int, tuple[float, float]]) -> list[dict[str, Any]]:
    return [row for n, (training, held_out) in losses.items() for row in (step(n, training), evaluation(n, held_out))]


def test_question_7b_and_12b_of_the_workshop() -> None:
    """The validation loss stays at 4.08 to 4.13, while the training loss falls to 2.61 at iteration 8,500."""
    falling = {500: (7.0, 7.1), 1500: (5.6, 5.7), 2500: (4.9, 5.0), 3500: (4.3, 4.5), 4500: (3.8, 4.13)}
    stalled = {5000: (3.6, 4.12), 5500: (3.4, 4.11), 6000: (3.25, 4.10), 6500: (3.1, 4.11), 7000: (2.95, 4.09)}
    end = {7500: (2.85, 4.10), 8000: (2.7, 4.09), 8500: (2.6058, 4.0778)}
    config = {"references": {"uniform": math.log(32_100), "unigram": 7.2}, "data": {"train_tokens": 2_400_000}}
    (found,) = diagnose(config, told({**falling, **stalled, **end}))
    assert found.kind == "memorising"
    assert str(found.words) == (
        "Overfitting since step 6,000: by step 8,500 the training loss fell from 3.25 to 2.61, while the validation "
        "loss went from 4.10 to 4.08."
    )
    assert "৩.২৫ থেকে ২.৬১-এ নেমেছে" in translate(found.words, "bn")
    assert len(found.advice) >= 3, "12b asks for three"


def test_a_short_run_below_a_baseline_should_train_longer() -> None:
    config = {"references": {"unigram": 2.0}, "data": {"train_tokens": 8192 * 50_000}}
    (found,) = diagnose(config, CALM)
    assert "only 2 % of its training text" in str(found.words)
    assert str(found.advice[0]).startswith("Train for more steps")
    assert not any("training text" in str(each) or "larger model" in str(each) for each in found.advice)
    (found,) = diagnose({**config, "data": {"train_tokens": 8192 * 500}}, CALM)
    assert found.kind == "no-better-than-counting"


def test_a_healthy_run_names_what_was_checked() -> None:
    assert str(reassure(3.0, {"uniform": 9.0, "unigram": 6.0, "3-gram": 2.9})).endswith(
        "below these baselines: uniform, unigram."
    )
    assert "was not evaluated on held-out text" in str(reassure(None, {"uniform": 9.0}))


def test_a_loss_that_is_not_finite() -> None:
    (found,) = diagnose({}, [*CALM, step(1001, None)])
    assert found.kind == "not-a-number"
    assert "At step 1,001" in str(found.words)
    assert "১,০০১ নম্বর ধাপে" in translate(found.words, "bn")


def test_one_bad_batch_is_no_finding() -> None:
    rows = [step(n, 8 - n / 50) for n in range(1, 100)]
    rows[60]["loss_nats"] = 12.0
    assert diagnose({}, rows) == []
    assert [each.kind for each in diagnose({}, rows[:70] + [step(n, 9.0) for n in range(71, 90)])] == [
        "learning-rate-too-high"
    ]


def test_harder_batches_are_no_finding_while_validation_improves() -> None:
    easy_then_hard = [step(n, 2.0 if n < 60 else 2.8) for n in range(1, 101)]
    falling = [evaluation(n, 3.5 - n / 100) for n in range(20, 101, 20)]
    assert diagnose({}, sorted(easy_then_hard + falling, key=lambda row: row["step"])) == []
    risen = [evaluation(n, 3.5 - n / 100 if n < 60 else 3.4) for n in range(20, 101, 20)]
    for evaluations in (risen, falling[:2], []):  # worse on held-out text too, or unknown
        rows = sorted(easy_then_hard + evaluations, key=lambda row: row["step"])
        assert diagnose({}, rows)[0].kind == "learning-rate-too-high"


ABOVE = [row for n in range(1, 11) for row in (step(100 * n, 5 / n**0.5), evaluation(100 * n, 4.5 / n**0.5))]
READ: dict[str, Any] = {"data": {"train_tokens": 8192 * 100}}


@pytest.mark.parametrize(
    ("config", "rows", "kinds"),
    [
        ({}, [], ["empty"]),
        (READ, ABOVE, ["leak"]),
        ({**READ, "model": {"dropout": 0.2}}, ABOVE, []),  # which explains a training loss above the validation loss
        (
            {"floors": {"bits_per_byte": 0.047}},
            [*CALM[:-1], evaluation(1000, 2.5, bits_per_byte=0.03)],
            ["leak-below-floor"],
        ),
    ],
)
def test_findings_of_described_curves(config: dict[str, Any], rows: list[dict[str, Any]], kinds: list[str]) -> None:
    assert [each.kind for each in diagnose(config, rows)] == kinds


def test_all_advice_has_the_same_form_in_both_languages() -> None:
    for kind, said in advice().items():
        assert said.keys() == {"seen", "try"} and said["seen"] and said["try"], kind
        assert {said["seen"], *said["try"]} <= catalogue("bn").keys(), kind


anything = st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3)
rows = st.dictionaries(
    st.sampled_from(["step", "loss_nats", "learning_rate", "tokens", "validation"]),
    anything | st.dictionaries(st.sampled_from(["loss_nats", "bits_per_byte", "bits_per_character"]), anything),
)
configs = st.dictionaries(
    st.sampled_from(["model", "training", "data", "references", "floors"]),
    anything
    | st.dictionaries(st.sampled_from(["uniform", "unigram", "train_tokens", "dropout", "vocab_size"]), anything),
)


@given(configs, st.lists(rows, max_size=30))
def test_the_doctor_accepts_any_contents_of_a_run_folder(config: Any, metrics: Any) -> None:
    for finding in diagnose(config, metrics):
        assert "{" not in str(finding.words) + translate(finding.words, "bn")


def test_invalid_references_are_skipped() -> None:
    rows = [{"step": step, "loss_nats": 5.0 - step} for step in range(1, 4)]
    odd = {"unigram": 10**400, "uniform": math.inf, "trigram": True, "bigram": "much"}
    assert diagnose({"references": odd}, rows) == diagnose({}, rows)
