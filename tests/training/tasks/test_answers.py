"""Answers: prompt tokens contribute exactly nothing; by hand, on all logits, it comes to the same gradients."""

import pytest
import torch
from tests.text.conftest import trained
from torch.nn.functional import cross_entropy

from kotha.errors import DataError
from kotha.model.config import GPTConfig
from kotha.model.gpt import GPT
from kotha.model.loss import IGNORED
from kotha.text.corpus.dialogues import Dialogue
from kotha.text.tokenizer.chat import Turn
from kotha.training.config import TrainConfig
from kotha.training.tasks.examples import AnswerTokens

TOKENIZER = trained("unigram")
MODEL = GPTConfig(vocab_size=TOKENIZER.vocab_size, context_length=40, n_layers=2, d_model=16, n_heads=2)
DIALOGUES: list[Dialogue] = [
    (Turn("user", "নদীর ধারে কে থাকে?"), Turn("assistant", "মা।")),
    (Turn("user", "কয়টি আম?"), Turn("assistant", "পাঁচটি আম।")),
    (Turn("user", "কে?"), Turn("assistant", "আমি।"), Turn("user", "কোথায়?"), Turn("assistant", "ঘরে।")),
]


def answers(dialogues: list[Dialogue] = DIALOGUES, **changes: object) -> AnswerTokens:
    return AnswerTokens(MODEL, TrainConfig(**{"batch_size": 3, **changes}), dialogues, DIALOGUES[:1], TOKENIZER)


def model() -> GPT:
    torch.manual_seed(1)
    return GPT(MODEL)


def test_only_what_the_assistant_said_is_a_target() -> None:
    batch = answers().batch(0, 0, 3)
    inputs, targets = batch.tensors["inputs"], batch.tensors["targets"]
    end = TOKENIZER.special["end"]
    by_hand = {}
    for turns in DIALOGUES:
        said = [[*TOKENIZER.encode(turn.text), end] for turn in turns if turn.role == "assistant"]
        by_hand[TOKENIZER.decode(TOKENIZER.encode(turns[0].text))] = [token for some in said for token in some]
    for row in range(3):
        first = inputs[row].tolist().index(end)
        asked = TOKENIZER.decode(inputs[row, 1:first].tolist())
        assert targets[row][targets[row] != IGNORED].tolist() == by_hand.pop(asked)
        for place in (targets[row, :-1] != IGNORED).nonzero().flatten().tolist():
            follows = int(inputs[row, place + 1])
            assert follows == targets[row, place] or follows == TOKENIZER.special["pad"], "the token after each"
    assert not by_hand and batch.targets == {"tokens": int((targets != IGNORED).sum())}


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_gradients_are_those_of_a_loss_over_answer_tokens_by_hand(smoothing: float) -> None:
    task = answers(label_smoothing=smoothing)
    batch = task.batch(0, 0, 3).tensors
    ours, plain = model(), model()
    task.losses(ours, batch)["tokens"].backward()
    logits = plain(batch["inputs"])
    wanted = batch["targets"] != IGNORED
    by_hand = [
        cross_entropy(logits[row, place], batch["targets"][row, place], label_smoothing=smoothing)
        for row, place in wanted.nonzero().tolist()
    ]
    (torch.stack(by_hand).sum() / len(by_hand)).backward()
    for (name, mine), other in zip(ours.named_parameters(), plain.parameters(), strict=True):
        assert mine.grad is not None and other.grad is not None
        torch.testing.assert_close(mine.grad, other.grad, atol=1e-6, rtol=1e-4, msg=name)


def test_what_a_prompts_targets_would_be_changes_nothing_and_its_places_get_no_gradient() -> None:
    task, net = answers(), model()
    batch = task.batch(0, 0, 3).tensors
    seen: list[torch.Tensor] = []

    def keep(hidden: torch.Tensor) -> torch.Tensor:
        hidden.retain_grad()
        seen.append(hidden)
        return hidden

    plain_hidden = net.hidden
    net.hidden = lambda tokens: keep(plain_hidden(tokens))  # type: ignore[method-assign, assignment]
    loss = task.losses(net, batch)["tokens"]
    loss.backward()
    prompt = batch["targets"] == IGNORED
    assert seen[0].grad is not None
    assert torch.count_nonzero(seen[0].grad[prompt]) == 0, "exactly nothing"
    assert (seen[0].grad[~prompt] != 0).any(dim=-1).all(), "and something from each answer token"
    # The same loss by hand, whatever is written where the prompt's targets would stand: they have no weight.
    for fill in (0, 7, 123):
        filled = batch["targets"].where(~prompt, fill)
        losses = cross_entropy(net.head(seen[0]).flatten(0, 1), filled.flatten(), reduction="none").view_as(filled)
        torch.testing.assert_close((losses * ~prompt).sum() / (~prompt).sum(), loss)


def test_what_is_too_long_is_left_out() -> None:
    long = (Turn("user", "নদীর ধারে " * 30), Turn("assistant", "মা।"))
    task = answers([*DIALOGUES, long])
    assert task.left_out == 1 and {each for step in range(9) for each in task.document_ids(step)} == {0, 1, 2}
    with pytest.raises(DataError, match="training examples can be used: each needs a text, of at most 40 tokens"):
        answers([long])
