"""Every objective compared with torch's and Hugging Face's own."""

from types import SimpleNamespace

import pytest
import torch
from tests.model.conftest import converted
from torch.nn.functional import cross_entropy
from transformers import BertConfig, BertForPreTraining

from kotha.errors import ConfigError
from kotha.model import objectives
from kotha.model.bert import BERT
from kotha.model.classifier import TextClassifier
from kotha.model.config import BERTConfig, GPTConfig, Seq2SeqConfig, ViTConfig, classifying
from kotha.model.loss import IGNORED
from kotha.model.seq2seq import Seq2Seq
from kotha.model.vit import ViT

SIZES = {"n_layers": 2, "d_model": 16, "n_heads": 2, "d_ff": 24}
TEXT = {**SIZES, "vocab_size": 40, "context_length": 12}
REAL = torch.arange(10) < torch.tensor([[10], [6], [8]])  # (3, 10)


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def assert_same(mine: torch.Tensor, other: torch.Tensor, weights: list[torch.Tensor]) -> None:
    """The loss, and the gradient for every weight."""
    assert torch.allclose(mine, other, atol=1e-6)
    gradients = [torch.autograd.grad(loss, weights, allow_unused=True, retain_graph=True) for loss in (mine, other)]
    for one, two in zip(*gradients, strict=True):
        assert (one is None) == (two is None)
        assert one is None or torch.allclose(one, two, atol=1e-6)


def test_masked_words_and_pairs_equal_hugging_faces_pretraining_loss() -> None:
    theirs = BertForPreTraining(
        BertConfig(
            vocab_size=40,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=24,
            max_position_embeddings=12,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            pad_token_id=None,
        )
    )
    ours = BERT(BERTConfig(**TEXT))
    ours.load_state_dict(converted(ours, theirs.state_dict()))
    tokens, segments, unrelated = torch.randint(40, (3, 10)), torch.randint(2, (3, 10)), torch.tensor([0, 1, 1])
    places = torch.tensor([[1, 4, 7], [2, 0, 0], [3, 5, 0]])
    words = torch.tensor([[5, 6, 7], [8, IGNORED, IGNORED], [9, 10, IGNORED]])
    labels = torch.full((3, 10), IGNORED)
    for row, place, word in ((0, 1, 5), (0, 4, 6), (0, 7, 7), (1, 2, 8), (2, 3, 9), (2, 5, 10)):
        labels[row, place] = word
    hidden = ours.hidden(tokens, segments, REAL)
    mine = objectives.word_loss(ours, objectives.masked_words(ours, hidden, places, words))
    mine = mine + objectives.sentence_pairs(ours, hidden, unrelated)
    other = theirs(
        tokens, attention_mask=REAL.long(), token_type_ids=segments, labels=labels, next_sentence_label=unrelated
    ).loss
    assert torch.allclose(mine, other, atol=1e-6)
    mine.backward()
    other.backward()
    expected = converted(ours, {name: each.grad for name, each in theirs.named_parameters() if each.grad is not None})
    for name, parameter in ours.named_parameters():
        if name != "head.bias":  # stored under another name in transformers
            assert torch.allclose(parameter.grad, expected[name], atol=1e-5), name
    assert torch.allclose(ours.head.bias.grad, theirs.cls.predictions.bias.grad, atol=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_teacher_forcing_is_cross_entropy_on_all_logits(smoothing: float) -> None:
    model = Seq2Seq(Seq2SeqConfig(**TEXT))
    source, target = torch.randint(40, (3, 10)), torch.randint(40, (3, 7))
    target[0, 5:] = target[2, 3:] = IGNORED
    mine = objectives.word_loss(model, objectives.teacher_forcing(model, source, target, REAL), smoothing)
    logits = model(source, target[:, :-1].where(target[:, :-1] >= 0, 39), REAL)  # any token can be used as padding
    other = cross_entropy(
        logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=IGNORED, label_smoothing=smoothing
    )
    assert_same(mine, other, list(model.parameters()))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_image_classes_are_cross_entropy(smoothing: float) -> None:
    model = ViT(ViTConfig(**SIZES, image_size=8, patch_size=4, n_channels=1, n_classes=3))
    images, labels = torch.randn(4, 1, 8, 8), torch.tensor([0, 2, 1, 1])
    mine = objectives.classes(model(images), labels, smoothing)
    assert_same(mine, cross_entropy(model(images), labels, label_smoothing=smoothing), list(model.parameters()))


@pytest.mark.parametrize("body", [BERTConfig(**TEXT), GPTConfig(**TEXT)], ids=["bert", "gpt"])
def test_padding_does_not_change_a_classification(body: BERTConfig | GPTConfig) -> None:
    model = TextClassifier(classifying(body, "abc")).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # with the initial scale of 0.02, changing a token has almost no effect
            parameter.add_(torch.randn_like(parameter) * 0.3)
    tokens, labels = torch.randint(40, (3, 10)), torch.tensor([2, 0, 1])
    alone = [
        model(tokens[row : row + 1, :length], REAL[row : row + 1, :length]) for row, length in enumerate((10, 6, 8))
    ]
    assert torch.allclose(model(tokens, REAL), torch.cat(alone), atol=1e-5)
    mine = objectives.classes(model(tokens, REAL), labels, 0.1)
    assert torch.allclose(mine, cross_entropy(torch.cat(alone), labels, label_smoothing=0.1), atol=1e-5)
    mine.backward()
    assert all(parameter.grad is not None for parameter in model.parameters()), "nothing is there that has no use"
    assert model.head.weight.grad.abs().sum() > 0
    for row, length in enumerate((10, 6, 8)):  # the last real token is an input too
        changed = tokens.clone()
        changed[row, length - 1] += 1 if tokens[row, length - 1] < 39 else -1
        assert not torch.allclose(model(changed, REAL)[row], alone[row][0], atol=1e-6)


def test_a_classifier_needs_a_body_that_reads_text_and_a_choice() -> None:
    with pytest.raises(ConfigError, match="a vit model cannot classify text; use bert or gpt"):
        classifying(ViTConfig(**SIZES, image_size=8, patch_size=4, n_classes=3), "abc")
    with pytest.raises(ConfigError, match=r"labels=\['a'\] is not valid; use at least 2"):
        classifying(GPTConfig(**TEXT), "a")
    with pytest.raises(ConfigError, match="is not valid; use at least 2 labels, distinct and not empty"):
        classifying(GPTConfig(**TEXT), "aa")


def test_judging_sums_what_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    model, rows = SimpleNamespace(head=torch.nn.Linear(4, 6)), torch.randn(2, 5, 4)
    logits = model.head(rows).detach()
    words = logits.argmax(-1)
    words[0, 0], words[1, 1] = IGNORED, (words[1, 1] + 1) % 6
    expected = cross_entropy(logits.flatten(0, 1), words.flatten(), ignore_index=IGNORED, reduction="sum")
    for chunk in (1, 7, 1 << 20):
        monkeypatch.setattr(objectives, "CHUNK_LOGITS", chunk)
        nats, right = objectives.score_token_predictions(model, (rows, words))
        assert float(nats) == pytest.approx(float(expected), rel=1e-5)
        assert int(right) == 8
