"""Robustness: scores of documents computed by hand, and the perturbed parts of questions and labelled texts."""

import json
import math
from pathlib import Path

import pytest
import torch

from kotha.artifacts import model_folder as bundle
from kotha.artifacts.model_folder import Bundle
from kotha.cli.main import MISUSED, OK, main
from kotha.errors import UsageError
from kotha.evaluation.perplexity import evaluate_text
from kotha.evaluation.robustness import evaluate_perturbed, robustness_table
from kotha.evaluation.translation import evaluate_pairs
from kotha.model.config import BERTConfig, GPTConfig, Seq2SeqConfig, classifying
from kotha.model.family import build
from kotha.model.gpt import GPT
from kotha.text.corpus.pairs import TextPairs
from kotha.text.held_out import from_texts
from kotha.text.perturb import perturb
from kotha.text.stories.corpus import story
from kotha.text.tokenizer.trainers import train

TEXTS = [story(1, index).text[:300] for index in range(4)]
SIZES = {"context_length": 32, "n_layers": 1, "d_model": 16, "n_heads": 2}


@pytest.fixture(scope="module")
def gpt() -> Bundle:
    tokenizer = train(TEXTS, "unigram", 600)
    torch.manual_seed(0)
    return Bundle(build(GPTConfig(vocab_size=tokenizer.vocab_size, **SIZES)).eval(), tokenizer)


def rows(file: Path, *values: object) -> Path:
    file.write_text("".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values), encoding="utf-8")
    return file


def test_bits_per_word_of_documents_match_a_computation_by_hand(gpt: Bundle, tmp_path: Path) -> None:
    file = rows(tmp_path / "a.jsonl", *({"text": text} for text in TEXTS))
    other = rows(tmp_path / "b.jsonl", {"text": "নদী"})
    found = evaluate_perturbed(gpt, file, ["latin", str(other)], share=0.5)
    assert isinstance(gpt.model, GPT) and gpt.tokenizer is not None
    plain = [gpt.tokenizer.normalize(text) for text in TEXTS]
    words = sum(len(text.split()) for text in plain)
    for texts, value in ((plain, found.before), ([perturb(text, "latin") for text in plain], found.falls[0].after)):
        score = evaluate_text(gpt.model, from_texts(texts, gpt.tokenizer))
        assert value == pytest.approx(score.loss_nats * score.tokens / math.log(2) / words)
    assert found.falls[0].change == pytest.approx(found.falls[0].after / found.before - 1)
    assert found.falls[0].changed_words == 1 and not found.more_is_better
    assert found.falls[1].changed_words is None and found.falls[1].example == "নদী"


def test_only_the_question_of_a_conversation_is_perturbed(gpt: Bundle, tmp_path: Path) -> None:
    file = rows(tmp_path / "a.jsonl", {"question": "রহিম ১২টি আম পেল।\n\nকয়টি আম?", "answer": "১২টি।"})
    found = evaluate_perturbed(gpt, file, ["digits", "latin"])
    assert str(found.figure) == "answered correctly" and found.before == 0
    assert [fall.example for fall in found.falls] == ["কয়টি আম?", "koyti am?"]
    assert math.isnan(found.falls[0].change), "nothing falls from nothing"


def test_robustness_of_a_classifier_is_macro_f1(gpt: Bundle, tmp_path: Path, capsys) -> None:
    torch.manual_seed(0)
    assert gpt.tokenizer is not None
    model = build(classifying(gpt.config, ["ক", "খ"]))
    folder = bundle.save(tmp_path / "classes", model, gpt.tokenizer)
    table = rows(tmp_path / "a.jsonl", *({"text": text, "label": "কখ"[place % 2]} for place, text in enumerate(TEXTS)))
    assert (
        main(["evaluate", str(folder), str(table), "--perturb", "spelling", "typos", "--share", "0.5", "--json"]) == OK
    )
    found = json.loads(capsys.readouterr().out)
    assert found["figure"] == "macro-F1" and [fall["kind"] for fall in found["falls"]] == ["spelling", "typos"]
    assert main(["evaluate", str(folder), str(table), "--perturb", "latin"]) == OK
    assert "macro-F1: higher is better" in capsys.readouterr().out
    assert main(["evaluate", str(folder), str(table), "--perturb", "speling"]) == MISUSED
    assert "did you mean 'spelling'" in capsys.readouterr().err
    assert main(["evaluate", str(folder), "--text", "ক", "--perturb", "latin"]) == MISUSED


def test_only_the_sources_of_pairs_are_perturbed(gpt: Bundle, tmp_path: Path) -> None:
    assert gpt.tokenizer is not None
    torch.manual_seed(0)
    config = Seq2SeqConfig(vocab_size=gpt.tokenizer.vocab_size, **{**SIZES, "context_length": 12})
    translator = Bundle(build(config).eval(), gpt.tokenizer)
    file = rows(tmp_path / "a.jsonl", {"bn": "নদীর ধারে", "en": "by the river"})
    found = evaluate_perturbed(translator, file, ["latin"], pair=("bn", "en"))
    assert found.figure == "chrF++" and found.more_is_better and found.falls[0].example == "nodir dhare"
    pairs = TextPairs(("nodir dhare",), ("by the river",))
    assert found.falls[0].after == evaluate_pairs(translator, pairs).chrf


def test_unsupported_models_and_perturbations_are_rejected(gpt: Bundle, tmp_path: Path) -> None:
    file = rows(tmp_path / "a.jsonl", {"text": "নদী"})
    assert gpt.tokenizer is not None
    bert = Bundle(build(BERTConfig(vocab_size=gpt.tokenizer.vocab_size, **SIZES)), gpt.tokenizer)
    with pytest.raises(UsageError, match="robustness cannot be measured for a bert model"):
        evaluate_perturbed(bert, file, ["latin"])
    with pytest.raises(UsageError, match="no perturbation given"):
        evaluate_perturbed(gpt, file, [])


def test_the_worst_case_costs_more_than_random_noise_with_as_many_words(gpt: Bundle, tmp_path: Path) -> None:
    file = rows(tmp_path / "a.jsonl", *({"text": text} for text in TEXTS))
    found = {fall.kind: fall for fall in evaluate_perturbed(gpt, file, ["spelling", "typos", "worst"]).falls}
    worst = found["worst"]
    table = robustness_table(evaluate_perturbed(gpt, file, ["worst"]), "gpt")
    assert any("first 20 texts" in str(remark) for remark in table.remarks)
    assert worst.after > max(found["spelling"].after, found["typos"].after) and worst.change > 0
    assert worst.changed_words is not None and 0 < worst.changed_words <= 0.34
    torch.manual_seed(0)
    assert gpt.tokenizer is not None
    classifier = Bundle(build(classifying(gpt.config, ["ক", "খ"])).eval(), gpt.tokenizer)
    file = rows(tmp_path / "b.jsonl", *({"text": text, "label": "কখ"[n % 2]} for n, text in enumerate(TEXTS)))
    before, after = (evaluate_perturbed(classifier, file, ["worst"]) for _ in range(2))
    assert before == after and before.falls[0].after <= before.before
    dialogue = rows(tmp_path / "c.jsonl", {"question": "কয়টি আম?", "answer": "১২টি।"})
    with pytest.raises(UsageError, match="the worst case can be searched only for a classifier"):
        evaluate_perturbed(gpt, dialogue, ["worst"])
