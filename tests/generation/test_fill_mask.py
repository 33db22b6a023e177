"""Fill-mask compared with Hugging Face's pipeline on the exported model, and rejected input."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tests.export.models import shaken
from tests.prepared import some_stories

import kotha
from kotha.artifacts.model_folder import Bundle, save
from kotha.cli.main import main
from kotha.errors import UsageError
from kotha.generation.fill_mask import GAP
from kotha.model.config import BERTConfig, GPTConfig
from kotha.text.tokenizer.trainers import train

SIZES: dict[str, Any] = {"vocab_size": 700, "context_length": 40, "n_layers": 2, "d_model": 16, "n_heads": 2}
SAMPLE = some_stories(seed=3, n_documents=60)
TEXTS = ["নদীর ধারে [MASK] থাকে।", "[MASK] সকালে মা [MASK] গেল।", "ছেলেটি স্কুলে[MASK]", "[MASK]"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = shaken(BERTConfig(**SIZES, attention_bias=True))
    return save(tmp_path_factory.mktemp("fill") / "bert", found.model, train(SAMPLE, "wordpiece", 700))


@pytest.fixture(scope="module")
def theirs(folder: Path) -> Path:
    out = folder.parent / "hf"
    assert kotha.load(folder).export("hf", out).passed
    return out


@pytest.mark.parametrize("text", TEXTS)
def test_words_and_probabilities_equal_those_of_transformers(folder: Path, theirs: Path, text: str) -> None:
    ours = kotha.load(folder).fill(text, words=700 - 5)
    pipe = transformers.pipeline("fill-mask", model=str(theirs), top_k=700)
    found = pipe(text)
    gaps = found if isinstance(found[0], list) else [found]
    assert len(ours.words) == len(gaps) == text.count(GAP)
    special = set(pipe.tokenizer.all_special_ids)
    for mine, other in zip(ours.words, gaps, strict=True):
        expected = {
            pipe.tokenizer.convert_ids_to_tokens(each["token"]): each["score"]
            for each in other
            if each["token"] not in special
        }
        assert {guess.word for guess in mine} == set(expected)
        for guess in mine:
            assert guess.probability == pytest.approx(expected[guess.word], rel=1e-4, abs=1e-8)
        assert [guess.probability for guess in mine] == sorted((guess.probability for guess in mine), reverse=True)


def test_next_sentence_prediction_equals_transformers(folder: Path, theirs: Path) -> None:
    first, second = "মা বাজারে গেল।", "সে মাছ কিনল।"
    tokenizer = transformers.AutoTokenizer.from_pretrained(theirs)
    model = transformers.BertForPreTraining.from_pretrained(theirs).eval()
    with torch.no_grad():
        result = model(**tokenizer(first, second, return_tensors="pt")).seq_relationship_logits
    assert kotha.load(folder).follows(first, second) == pytest.approx(float(result.softmax(-1)[0, 0]), rel=1e-4)


def test_the_text_contains_the_predicted_word(folder: Path) -> None:
    [first, second] = kotha.load(folder).fill("[MASK] সকালে মা [MASK] গেল।", words=700 - 5).words
    plain = next(guess for guess in first if not guess.word.startswith("##"))
    assert plain.text == f"{plain.word} সকালে মা [MASK] গেল।"
    joined = next(guess for guess in second if guess.word.startswith("##"))
    assert joined.text == f"[MASK] সকালে মা{joined.word[2:]} গেল।"
    for guess in first + second:
        assert guess.text.count(GAP) == 1


def test_the_command_prints_text_and_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = TEXTS[0]
    assert main(["fill", str(folder), text, "--words", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["text"] == text
    assert [len(each) for each in found["words"]] == [3]
    assert main(["fill", str(folder), text, "--words", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[0].endswith(found["words"][0][0]["text"])
    assert main(["fill", str(folder), "মা গেল।", "--next", "সে ফিরল।", "--json"]) == 0
    assert 0 < json.loads(capsys.readouterr().out)["follows"] < 1


def test_invalid_fill_requests_are_rejected(folder: Path, tmp_path: Path) -> None:
    lm = kotha.load(folder)
    with pytest.raises(UsageError, match=r"no gap to fill; write \[MASK\]"):
        lm.fill("মা বাজারে গেল।")
    with pytest.raises(UsageError, match="words=0 is too small"):
        lm.fill(GAP, words=0)
    with pytest.raises(UsageError, match="but the model's context is 40; shorten it"):
        lm.fill("মা " * 60 + GAP)
    with pytest.raises(UsageError, match="one of them is empty"):
        lm.follows("মা", " ")
    with pytest.raises(UsageError, match="is a bert model and does not generate text; it fills gaps: use fill"):
        lm.generate("মা")
    gpt = kotha.LanguageModel(Bundle(shaken(GPTConfig(**SIZES)).model, lm.tokenizer))
    with pytest.raises(UsageError, match="only BERT models can fill gaps"):
        gpt.fill(GAP)
    other = kotha.LanguageModel(Bundle(lm.model, train(SAMPLE, "unigram", 700)))
    with pytest.raises(UsageError, match="no cls and no sep token"):
        other.fill(GAP)
