"""Masked words and pairs: compared with Hugging Face's BERT, and with manual counts."""

import json
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.inside.small_models import make

import kotha
from kotha.cli.main import main
from kotha.errors import DataError
from kotha.evaluation import masked_words
from kotha.evaluation.masked_words import evaluate_masked, masked_table
from kotha.text.held_out import from_texts
from kotha.text.stories.corpus import stories
from kotha.training.tasks.masked_words import Masking

TEXTS = [story.text for story in islice(stories(seed=11), 12)]


def test_every_model_gets_the_same_input_without_the_masked_words() -> None:
    made = make("bert")
    held_out = from_texts(TEXTS, made.tokenizer, "texts")
    windows = list(masked_words._windows(held_out, made.config.context_length - 3))
    assert all(len(each.first) + len(each.second) <= made.config.context_length - 3 for each in windows)
    again = list(masked_words._windows(held_out, made.config.context_length - 3))
    assert [each.first.tolist() for each in windows] == [each.first.tolist() for each in again]
    seen: list[torch.Tensor] = []
    whole = made.model.hidden

    def watched(tokens: torch.Tensor, *more: torch.Tensor) -> torch.Tensor:
        seen.append(tokens)
        return whole(tokens, *more)

    made.model.hidden = watched  # type: ignore[method-assign]
    score = evaluate_masked(made.model, made.tokenizer, held_out)
    mask = made.tokenizer.special["mask"]
    assert sum(int((tokens == mask).sum()) for tokens in seen) == score.words > 0
    assert score.pairs == len(windows) and score.documents == len(TEXTS)


def test_a_perfect_and_a_random_model(monkeypatch: pytest.MonkeyPatch) -> None:
    made = make("bert")
    held_out = from_texts(TEXTS, made.tokenizer, "texts")
    messages: list[int] = []
    hide = masked_words._hide

    def noted(window: masked_words._Window, ordinary: np.ndarray) -> np.ndarray:
        places = hide(window, ordinary)
        messages.extend(np.concatenate([window.first, window.second])[places].tolist())
        return places

    monkeypatch.setattr(masked_words, "_hide", noted)

    class Knows(torch.nn.Module):
        """Predicts the masked words; every third one is only its second choice."""

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            logits = torch.zeros(len(rows), made.config.vocab_size)
            for row, word in enumerate(messages[: len(rows)]):
                logits[row, word] = 5.0
                if row % 3 == 2:
                    logits[row, word - 1] = 6.0
            del messages[: len(rows)]
            return logits

    made.model.head = Knows()  # type: ignore[assignment]
    score = evaluate_masked(made.model, made.tokenizer, held_out)
    assert score.words_top5 > 0.99
    assert score.words_accuracy == pytest.approx(2 / 3, abs=0.05)


def test_the_loss_of_masked_words_equals_hugging_faces(tmp_path: Path) -> None:
    """The loss of masked words equals that of transformers' BERT on the same tokens."""
    transformers = pytest.importorskip("transformers")
    made = make("bert")
    lm = kotha.LanguageModel(made)
    lm.export("hf", tmp_path / "hf")
    theirs = transformers.BertForPreTraining.from_pretrained(tmp_path / "hf").eval()
    held_out = from_texts(TEXTS[:3], made.tokenizer, "texts")
    marks = Masking(made.tokenizer)
    total, words = 0.0, 0
    for window in masked_words._windows(held_out, made.config.context_length - 3):
        places = masked_words._hide(window, marks.is_ordinary)
        tokens, segments, _ = masked_words._as_rows([(window.first, window.second)], marks, made.model)
        at = torch.from_numpy(places + 1 + (places >= len(window.first)))
        wanted = tokens[0, at].clone()
        tokens[0, at] = marks.mask
        with torch.no_grad():
            logits = theirs(input_ids=tokens, token_type_ids=segments).prediction_logits[0, at]
        logits[:, ~torch.from_numpy(marks.is_ordinary)] = -torch.inf
        total += float(torch.nn.functional.cross_entropy(logits, wanted, reduction="sum"))
        words += len(wanted)
    score = evaluate_masked(made.model, made.tokenizer, held_out)
    assert (score.words, score.words_nats) == (words, pytest.approx(total / words, abs=1e-4))


def test_counting_baselines_by_hand() -> None:
    ordinary = np.array([False, True, True, True])
    learned = np.array([1, 2, 1, 2, 1, 3, 0, 1])  # after 1: 2 twice, 3 once; after 2: 1; the most frequent token is 1
    found = masked_words._by_counting(learned, [(1, 2), (1, 3), (2, 1), (9, 1)], ordinary)
    assert found == {"most frequent token": 0.5, "bigram": 0.75}


def test_one_document_has_no_pairs_and_too_little_text_is_an_error() -> None:
    made = make("bert")
    alone = evaluate_masked(made.model, made.tokenizer, from_texts(TEXTS[:1], made.tokenizer, "one"))
    assert (
        alone.pairs_accuracy is None
        and alone.pairs == 0
        and "pairs classified correctly" not in str(masked_table(alone, "x"))
    )
    with pytest.raises(DataError, match="every document has fewer than 4 tokens"):
        evaluate_masked(made.model, made.tokenizer, from_texts(["ক"], made.tokenizer, "short"))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    room = Path(__file__).parents[1] / "format_fixtures" / "0.1.0"
    monkeypatch.chdir(room)
    return room / "runs" / "bert"


def test_the_command_evaluates_a_bert_with_baselines(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(run), "data/wordpiece", "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert 0 <= output["words_accuracy"] <= output["words_top5"] <= 1 and output["pairs"] > 0
    assert set(output["baselines"]) == {
        *("most frequent token", "bigram"),
        *("pairs: random guess", "pairs: token overlap"),
    }
    assert main(["evaluate", str(run), "stories.jsonl", "--language", "bn"]) == 0
    printed = capsys.readouterr().out
    assert "মাস্ক-করা শব্দ ঠিক ধরেছে" in printed and "পয়সা ছুড়ে" in printed and "hidden" not in printed
