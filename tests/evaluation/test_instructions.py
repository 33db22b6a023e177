"""Scores of answers: exact match, intervals computed by statsmodels' formula, and baselines."""

import math

import pytest
import torch

from kotha.artifacts.model_folder import Bundle
from kotha.errors import DataError, UsageError
from kotha.evaluation.instructions import (
    InstructionScore,
    evaluate_instructions,
    instructions_table,
    score_replies,
    wilson_interval,
)
from kotha.model.config import BERTConfig, GPTConfig
from kotha.model.family import build
from kotha.text.corpus.dialogues import Dialogues
from kotha.text.tokenizer.chat import ChatTemplate, Turn
from kotha.text.tokenizer.trainers import train


def dialogues(*pairs: tuple[str, str]) -> Dialogues:
    turns = tuple((Turn("user", question), Turn("assistant", answer)) for question, answer in pairs)
    return Dialogues(turns, tuple(map(str, range(len(pairs)))))


def test_punctuation_case_and_spaces_are_ignored() -> None:
    wanted = ["পাঁচটি।", "রহিমের মা", "Dhaka", "তিন টাকা।"]
    result = [" পাঁচটি ", "রহিমের  মা।", "dhaka.", "চার টাকা।"]
    score = score_replies(["?"] * 4, wanted, result)
    assert [reply.correct for reply in score.replies] == [True, True, True, False]
    assert score.exact_match == 0.75 and score.word_f1 == pytest.approx((3 + 0.5) / 4), "one of two words in common"
    assert InstructionScore.of_summary(score.to_dict()) == score


def test_the_interval_solves_wilsons_equation() -> None:
    for right, count in ((0, 10), (3, 10), (10, 10), (57, 200)):
        low, high = wilson_interval(right / count, count)
        for bound in (low, high):  # where the true share is 1.96 standard deviations from the observed share
            if 0 < bound < 1:
                deviation = math.sqrt(bound * (1 - bound) / count)
                assert abs(bound - right / count) == pytest.approx(1.96 * deviation, rel=1e-6)
        assert 0 <= low <= right / count <= high <= 1


def test_the_most_frequent_answer_is_the_baseline() -> None:
    learned = dialogues(("ক?", "মা।"), ("খ?", "মা"), ("গ?", "বাবা।"))
    score = score_replies(["?", "?"], ["মা।", "দাদা।"], ["x", "y"], learned=learned)
    assert score.baselines == {"most frequent answer": 0.5} and score.exact_match == 0.0
    rows = {str(name): str(value) for name, value in instructions_table(score, "run", before=0.25).cells[:4]}
    assert rows["before fine-tuning"] == "25.0%" and rows["baseline: most frequent answer"] == "50.0%"


def test_chat_models_get_turns_and_other_models_plain_text() -> None:
    tokenizer = train(["নদীর ধারে মা থাকে। পাঁচটি আম।"], "char", level="akshara")
    torch.manual_seed(0)
    sizes = {"vocab_size": tokenizer.vocab_size, "context_length": 32, "n_layers": 1, "d_model": 16, "n_heads": 2}
    model = build(GPTConfig(**sizes)).eval()
    asked = dialogues(("নদীর ধারে?", "মা।"), ("আম?", "পাঁচটি।"))
    plain = evaluate_instructions(Bundle(model, tokenizer), asked)
    taught = evaluate_instructions(Bundle(model, tokenizer, ChatTemplate.of(tokenizer)), asked)
    assert (plain.instruction_tuned, taught.instruction_tuned) == (False, True)
    assert [reply.question for reply in taught.replies] == ["নদীর ধারে?", "আম?"]
    assert not any("।" in reply.answer for reply in plain.replies), "its first sentence"
    with pytest.raises(UsageError, match="a bert model cannot answer questions"):
        evaluate_instructions(Bundle(build(BERTConfig(**sizes)), tokenizer), asked)
    with pytest.raises(DataError, match="no questions to evaluate on"):
        evaluate_instructions(Bundle(model, tokenizer), dialogues())
