"""Tasks over examples: their order, answers in conversations, and pairs of texts.

Each example is used once per epoch. The prompt tokens of a conversation do not contribute to the loss. Pairs have
special tokens.
"""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.text.conftest import trained
from torch.nn.functional import cross_entropy

from kotha.errors import ConfigError, DataError
from kotha.model.config import GPTConfig, Seq2SeqConfig
from kotha.model.gpt import GPT
from kotha.model.loss import IGNORED
from kotha.model.presets import preset
from kotha.text.corpus.dialogues import Dialogue
from kotha.text.tokenizer.chat import Turn
from kotha.training.config import TrainConfig
from kotha.training.tasks.examples import AnswerTokens, Order, TextPair, Translation

TOKENIZER = trained("unigram")
START, END = TOKENIZER.special["bos"], TOKENIZER.special["eos"]


def epochs(order: Order, n_examples: int, count: int) -> list[list[int]]:
    return [[order.example(turn) for turn in range(n * n_examples, (n + 1) * n_examples)] for n in range(count)]


@pytest.mark.parametrize("n_examples", [1, 7, 64, 1000, 1001])
@pytest.mark.parametrize("sorted_by_length", [False, True])
def test_each_example_once_per_epoch_in_a_new_order(n_examples: int, sorted_by_length: bool) -> None:
    lengths = np.random.default_rng(1).integers(1, 200, n_examples) if sorted_by_length else None
    order = Order(n_examples, 8, seed=3, lengths=lengths)
    seen = epochs(order, n_examples, 3)
    assert all(sorted(each) == list(range(n_examples)) for each in seen)
    assert n_examples < 64 or seen[0] != seen[1] != seen[2]
    assert seen == epochs(Order(n_examples, 8, seed=3, lengths=lengths), n_examples, 3), "determined by seed and turn"
    assert n_examples < 64 or seen != epochs(Order(n_examples, 8, seed=4, lengths=lengths), n_examples, 3)


def test_texts_of_a_batch_have_similar_lengths_and_batches_are_shuffled() -> None:
    lengths = np.random.default_rng(1).geometric(0.03, 1000)
    steps = range(3 * 1000 // 8)

    def filled(order: Order) -> float:
        """The share of positions that are not padding."""
        batches = [lengths[order.examples(step)] for step in steps]
        return sum(each.sum() for each in batches) / sum(len(each) * each.max() for each in batches)

    alike, any_order = Order(1000, 8, seed=0, lengths=lengths), Order(1000, 8, seed=0)
    assert filled(any_order) < 0.5
    assert filled(alike) > 0.8
    longest = [int(lengths[alike.examples(step)].max()) for step in range(1000 // 8)]
    follows = np.corrcoef(longest[:-1], longest[1:])[0, 1]
    assert abs(follows) < 0.3, "lengths of consecutive batches are uncorrelated"


# -- answers -----------------------------------------------------------------------------------------------------------


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


def test_only_the_assistants_tokens_are_targets() -> None:
    batch = answers().batch(0, 0, 3)
    inputs, targets = batch.tensors["inputs"], batch.tensors["targets"]
    end = TOKENIZER.special["end"]
    by_hand = {}
    for turns in DIALOGUES:
        replies = [[*TOKENIZER.encode(turn.text), end] for turn in turns if turn.role == "assistant"]
        by_hand[TOKENIZER.decode(TOKENIZER.encode(turns[0].text))] = [token for some in replies for token in some]
    for row in range(3):
        first = inputs[row].tolist().index(end)
        question = TOKENIZER.decode(inputs[row, 1:first].tolist())
        assert targets[row][targets[row] != IGNORED].tolist() == by_hand.pop(question)
        for position in (targets[row, :-1] != IGNORED).nonzero().flatten().tolist():
            follows = int(inputs[row, position + 1])
            assert follows == targets[row, position] or follows == TOKENIZER.special["pad"], "the token after each"
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
        cross_entropy(logits[row, position], batch["targets"][row, position], label_smoothing=smoothing)
        for row, position in wanted.nonzero().tolist()
    ]
    (torch.stack(by_hand).sum() / len(by_hand)).backward()
    for (name, mine), other in zip(ours.named_parameters(), plain.parameters(), strict=True):
        assert mine.grad is not None and other.grad is not None
        torch.testing.assert_close(mine.grad, other.grad, atol=1e-6, rtol=1e-4, msg=name)


def test_prompt_targets_change_nothing_and_get_no_gradient() -> None:
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
    # The same loss computed manually, for any targets in the prompt, because they have no weight.
    for fill in (0, 7, 123):
        filled = batch["targets"].where(~prompt, fill)
        losses = cross_entropy(net.head(seen[0]).flatten(0, 1), filled.flatten(), reduction="none").view_as(filled)
        torch.testing.assert_close((losses * ~prompt).sum() / (~prompt).sum(), loss)


def test_conversations_that_are_too_long_are_skipped() -> None:
    long = (Turn("user", "নদীর ধারে " * 30), Turn("assistant", "মা।"))
    task = answers([*DIALOGUES, long])
    assert task.too_long == 1 and task._order.n_examples == 3
    with pytest.raises(DataError, match="training examples can be used: each must have at most 40 tokens"):
        answers([long])


# -- pairs -------------------------------------------------------------------------------------------------------------


# A token identifies its pair: tens for the pair, units for the position.
PAIRS: list[TextPair] = [
    ([10 * n + i for i in range(1 + n % 4)], [10 * n + i for i in range(2 + n % 3)]) for n in range(10, 21)
]


def translation(pairs: list[TextPair] = PAIRS, held_out: list[TextPair] = PAIRS[:4], **changes: object) -> Translation:
    model = Seq2SeqConfig(vocab_size=TOKENIZER.vocab_size, context_length=6, n_layers=1, d_model=8, n_heads=1)
    return Translation(model, TrainConfig(**{"batch_size": 4, "seed": 3, **changes}), pairs, held_out, TOKENIZER)


def test_a_pair_has_special_tokens_and_padding_is_ignored() -> None:
    batch = translation().batch(0, 0, 4)
    source, real, target = (batch.tensors[name] for name in ("source", "real", "target"))
    for row in range(4):
        ids, answer = source[row][real[row]].tolist(), target[row][target[row] != IGNORED].tolist()
        assert (ids[-1], answer[0], answer[-1]) == (END, START, END)
        assert (ids[:-1], answer[1:-1]) in [(list(a), list(b)) for a, b in PAIRS], "both sides are of one pair"
    assert real.any(dim=0).all(), "as wide as the longest"
    assert (target != IGNORED).any(dim=0).all()
    assert batch.targets == {"tokens": int((target[:, 1:] != IGNORED).sum())}
    assert batch.tokens == source.numel() + target[:, 1:].numel()


@settings(max_examples=20)
@given(step=st.integers(0, 10_000), first=st.integers(0, 3), count=st.integers(1, 4))
def test_a_slice_equals_a_part_of_the_batch(step: int, first: int, count: int) -> None:
    full, part = translation().batch(step, 0, 4), translation().batch(step, first, min(count, 4 - first))
    for name, tensor in part.tensors.items():
        assert torch.equal(tensor, full.tensors[name][first : first + count]), name


def test_unusable_pairs_are_skipped_and_counted() -> None:
    most = list(range(100, 105))  # with the special token, a full context of 6
    made = translation([([], [1]), ([1], []), ([*most, 1], [1]), (most, most), ([1], [*most, 1])], PAIRS[:2])
    assert made.too_long == 4
    assert made.batch(0, 0, 1).tensors["target"].tolist() == [[START, *most, END]]


def test_the_unigram_counts_targets_only() -> None:
    pair = [10, 11], [12, 13, 14]
    made = translation([pair] * 3, [pair])
    answers, vocab_size = [*pair[1], END], TOKENIZER.vocab_size
    counts = np.bincount(answers, minlength=vocab_size)
    chances = (3 * counts + 1) / (3 * len(answers) + vocab_size)
    expected = {"uniform": math.log(vocab_size), "unigram": -np.log(chances[answers]).mean()}
    assert made.references() == pytest.approx(expected)
    assert made.score({"tokens": 6.0, "right": 1.0}, {"tokens": 4}) == {"loss_nats": 1.5, "accuracy": 0.25, "tokens": 4}


def test_unusable_pairs_are_rejected() -> None:
    with pytest.raises(ConfigError, match="use vocab_size="):
        Translation(preset("pocket-seq2seq").replace(vocab_size=9), TrainConfig(), PAIRS, PAIRS, TOKENIZER)
    with pytest.raises(DataError, match="none of the 0 training examples can be used: each must have"):
        translation([])
    with pytest.raises(DataError, match="none of the 1 validation examples"):
        translation(held_out=[([], [1])])
