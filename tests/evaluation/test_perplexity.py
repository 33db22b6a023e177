"""Perplexity compared with manual computations, a slow version and Hugging Face's loss; and the baselines."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.evaluation.plain_twins import token_nats_plainly
from tests.prepared import write_lines
from transformers import GPT2Config, GPT2LMHeadModel

from kotha.artifacts.run_folder import find_data
from kotha.errors import DataError, UsageError
from kotha.evaluation.perplexity import baselines, check_windows, count_baselines, evaluate_text, token_nats, windows
from kotha.i18n.message import Message
from kotha.model.family import build
from kotha.model.gpt import GPT
from kotha.model.presets import preset
from kotha.text.held_out import HeldOut, from_dataset, from_texts, read_held_out, tokens_of
from kotha.text.ngram import KneserNey
from kotha.text.tokenizer.trainers import train
from kotha.training.config import TrainConfig
from kotha.training.tasks.task import NextToken


@given(st.integers(0, 80), st.integers(1, 20), st.data())
def test_every_token_is_scored_once_with_enough_before_it(length: int, context: int, data) -> None:
    stride = data.draw(st.integers(1, context))
    found = windows(length, context, stride)
    scored = [place for window in found for place in range(window.scored, window.stop)]
    assert scored == list(range(length))
    for number, window in enumerate(found):
        assert window.stop - window.start <= context
        assert window.start == number * stride
        assert number == 0 or window.scored - window.start >= context - stride


@settings(max_examples=15)
@given(st.lists(st.lists(st.integers(0, 39), max_size=30), min_size=1, max_size=5), st.integers(1, 8), st.data())
def test_the_fast_evaluation_equals_its_readable_twin(tiny, documents: list[list[int]], context: int, data) -> None:
    stride = data.draw(st.integers(1, context))
    model = tiny(vocab_size=40)
    sequences = [[7, *document] for document in documents]
    fast = list(token_nats(model, [np.array(each) for each in sequences], context, stride))
    for mine, sequence in zip(fast, sequences, strict=True):
        assert mine == pytest.approx(token_nats_plainly(model, sequence, context, stride), abs=1e-5)


def test_documents_in_small_batches_keep_their_order(tiny, monkeypatch) -> None:
    model, rng = tiny(vocab_size=40), np.random.default_rng(0)
    sequences = [rng.integers(0, 40, rng.integers(2, 25)) for _ in range(20)]
    together = list(token_nats(model, sequences, 8, 4))
    monkeypatch.setattr("kotha.evaluation.perplexity._POSITIONS", 16)
    monkeypatch.setattr("kotha.evaluation.perplexity._SORTED", 3)
    for one, other in zip(together, token_nats(model, sequences, 8, 4), strict=True):
        assert one == pytest.approx(other, abs=1e-5)


@pytest.mark.parametrize(("context", "stride"), [(12, 12), (12, 6), (12, 1), (7, 3)])
def test_the_loss_equals_hugging_faces(context: int, stride: int) -> None:
    from tests.model.conftest import converted

    torch.manual_seed(0)
    shape = {"n_layer": 2, "n_head": 2, "n_embd": 16, "vocab_size": 50, "n_positions": 12}
    theirs = GPT2LMHeadModel(GPT2Config(**shape, bos_token_id=0, eos_token_id=0)).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    config = preset("gpt2").replace(d_model=16, n_heads=2, n_layers=2, vocab_size=50, context_length=12)
    ours = GPT(config)
    ours.load_state_dict(converted(ours, theirs.state_dict()))
    rng = np.random.default_rng(0)
    documents = [rng.integers(1, 50, size) for size in (30, 5, 12, 1)]
    line = np.concatenate([[*document, 0] for document in documents])
    text = HeldOut("drawn", line, end=0, bytes=100, characters=50, tokenizer="none")
    score = evaluate_text(ours, text, context_length=context, stride=stride)
    assert score.tokens == len(line)
    assert score.loss_nats == pytest.approx(hugging_face_loss(theirs, text, context, stride), abs=1e-4)
    assert score.perplexity == pytest.approx(math.exp(score.loss_nats))
    assert ours.training, "left as it was"


def hugging_face_loss(model: GPT2LMHeadModel, text: HeldOut, context: int, stride: int) -> float:
    """The method of https://huggingface.co/docs/transformers/perplexity, for each document from its start."""
    nats = 0.0
    for document in text:
        ids = torch.tensor([[text.end, *document]])
        scored = 1  # the first token is given
        for start in range(0, ids.shape[1], stride):
            stop = min(start + context + 1, ids.shape[1])
            window = ids[:, start:stop]
            inputs, targets = window[:, :-1], window[:, 1:].clone()
            targets[:, : scored - start - 1] = -100
            with torch.no_grad():
                logits = model(inputs).logits
            labels = torch.cat([torch.full((1, 1), -100), targets], 1)
            padded = torch.cat([logits, logits[:, -1:]], 1)  # the loss in transformers shifts the labels by one
            mean = model.loss_function(padded, labels, vocab_size=model.config.vocab_size)
            nats += float(mean) * int((targets != -100).sum())
            scored = stop
            if stop == ids.shape[1]:
                break
    return nats / len(text.line)


def test_an_untrained_model_has_a_loss_of_ln_v(tiny, tokenizer) -> None:
    model = tiny()
    with torch.no_grad():
        model.head.weight.zero_()
    text = from_texts(["আমি ভাত খাই।", "সে বই পড়ে।"], tokenizer)
    score = evaluate_text(model, text)
    n_tokens = sum(len(tokenizer.encode(each)) + 1 for each in ("আমি ভাত খাই।", "সে বই পড়ে।"))
    assert (score.tokens, score.documents, score.characters) == (n_tokens, 2, 12 + 11)
    assert score.bytes == (10 * 3 + 2) + (9 * 3 + 2), "three a letter, one a space"
    assert score.loss_nats == pytest.approx(math.log(700), abs=1e-5)
    assert score.perplexity == pytest.approx(700, rel=1e-4)
    assert score.bits_per_byte == pytest.approx(n_tokens * math.log2(700) / score.bytes, rel=1e-5)
    assert score.bits_per_character == pytest.approx(n_tokens * math.log2(700) / score.characters, rel=1e-5)
    assert (score.context, score.stride, score.tokenizer) == (8, 4, tokenizer.fingerprint)


def test_a_file_and_a_validation_split_give_the_same(tiny, make_data, texts, tokenizer, tmp_path) -> None:
    file = write_lines(tmp_path / "held_out.jsonl", texts[50:53])
    folder = make_data(texts[:20], held_out=texts[50:53])
    model = tiny(context_length=32)
    from_file = evaluate_text(model, read_held_out(file, tokenizer))
    from_split = evaluate_text(model, read_held_out(folder.path, tokenizer))
    info = folder["validation"].info
    assert (from_file.tokens, from_file.bytes, from_file.characters) == (info.tokens, info.bytes, info.characters)
    assert from_file.bits_per_byte == from_split.bits_per_byte
    bits = from_file.loss_nats / math.log(2) * info.tokens
    assert from_file.bits_per_byte == pytest.approx(bits / info.bytes), "as a run's own score counts them"


def test_a_long_text_is_cut_to_its_first_documents(make_data, texts, tokenizer, tmp_path) -> None:
    file, folder = write_lines(tmp_path / "texts.jsonl", texts[50:60]), make_data(texts[:20], held_out=texts[50:60])
    room = sum(len(text.encode()) for text in texts[50:53]) - 1
    short = [read_held_out(place, tokenizer, most_bytes=room) for place in (file, folder.path)]
    assert [each.documents for each in short] == [3, 3]
    assert (short[0].line == short[1].line).all()
    assert (short[0].line == from_texts(texts[50:53], tokenizer).line).all()
    assert str(short[0].name) == f"the first 3 documents of {file}"
    whole = [read_held_out(file, tokenizer, most_bytes=size) for size in (None, 10**9)]
    assert [(each.documents, each.name) for each in whole] == [(10, str(file))] * 2


def test_unknown_tokens_are_counted(tiny) -> None:
    tokenizer = train(["আমি ভাত খাই।"], "char", level="akshara")
    text = from_texts(["আমি খাই", "α ভাত β"], tokenizer)
    assert text.unknown == 2
    assert evaluate_text(tiny(vocab_size=tokenizer.vocab_size), text).unknown == 2


def test_progress_reaches_the_end(tiny, data, tokenizer) -> None:
    messages: list[tuple[str, int, int]] = []
    text = from_dataset(data, tokenizer)
    evaluate_text(tiny(), text, on_progress=lambda *each: messages.append(each))
    assert messages[-1] == (Message("measuring"), len(text.line), len(text.line))


@pytest.mark.parametrize(
    ("given", "wording"),
    [
        ({"context_length": 9}, "a context of 9 is out of range; use a value from 1 to the model's limit of 8"),
        ({"context_length": 0}, "a context of 0"),
        ({"stride": 0}, "a stride of 0 is out of range; use a value from 1 to the context length of 8"),
        (
            {"context_length": 4, "stride": 5},
            "a stride of 5 is out of range; use a value from 1 to the context length of 4",
        ),
    ],
)
def test_invalid_windows_are_rejected(tiny, data, tokenizer, given, wording: str) -> None:
    with pytest.raises(UsageError, match=wording):
        evaluate_text(tiny(), from_dataset(data, tokenizer), **given)


def test_only_a_gpt_can_be_evaluated() -> None:
    with pytest.raises(UsageError, match="a BERT does not predict the next token"):
        check_windows(build(preset("pocket-bert").replace(n_layers=1)), None, None)


def test_invalid_text_is_rejected(data, make_data, texts, tokenizer, tmp_path) -> None:
    other = train(texts[:20], "unigram", 500)
    with pytest.raises(DataError, match="so the token ids do not match"):
        from_dataset(data, other)
    with pytest.raises(DataError, match="has no validation documents; run `kotha prepare` with a validation share"):
        from_dataset(make_data(texts[:5], validation=0.0), tokenizer)
    with pytest.raises(DataError, match="has no split 'test'"):
        from_dataset(data, tokenizer, "test")
    with pytest.raises(DataError, match="nothing contains no text"):
        from_texts([], tokenizer, "nothing")


# -- baselines --------------------------------------------------------------------------------------------------------


def test_each_baseline_beats_the_one_before(data, tokenizer) -> None:
    text = from_dataset(data, tokenizer)
    found = count_baselines(data, text, vocab_size=700)
    losses = {name: each["loss_nats"] for name, each in found.items()}
    assert list(losses) == ["uniform", "unigram", "3-gram", "5-gram"]
    assert losses["uniform"] == math.log(700)
    assert losses["uniform"] > losses["unigram"] > losses["3-gram"] > 0
    for row in found.values():
        assert row["perplexity"] == pytest.approx(math.exp(row["loss_nats"]))
        assert row["bits_per_byte"] * text.bytes == pytest.approx(row["loss_nats"] / math.log(2) * len(text.line))
        assert row["bits_per_character"] * text.characters == pytest.approx(row["bits_per_byte"] * text.bytes)


def test_the_references_of_a_run_equal_the_baselines(data, tokenizer, tiny) -> None:
    references = NextToken(tiny().config, TrainConfig(), data).references()
    found = count_baselines(data, from_dataset(data, tokenizer), vocab_size=700)
    assert {name: found[name]["loss_nats"] for name in references} == pytest.approx(references)


def test_numbers_on_paper() -> None:
    text = HeldOut("paper", np.array([1, 2, 0]), end=0, bytes=6, characters=2, tokenizer="none")
    rows = baselines(np.array([1, 1, 0]), text, vocab_size=4, orders=(1,))
    assert rows["uniform"]["bits_per_byte"] == pytest.approx(3 * 2 / 6), "two bits per token"
    assert rows["unigram"]["loss_nats"] == pytest.approx(-(math.log(3 / 7) + math.log(1 / 7) + math.log(2 / 7)) / 3)
    counted = KneserNey(np.array([1, 1, 0]), 1, 4, end=0).nats(text.line).mean()
    assert rows["1-gram"]["loss_nats"] == pytest.approx(counted)


def test_baselines_count_the_first_tokens_of_a_long_text(data, tokenizer, monkeypatch) -> None:
    messages = []
    text = from_dataset(data, tokenizer)
    all_of_them = count_baselines(data, text, 700)
    monkeypatch.setattr("kotha.evaluation.perplexity.MAX_TOKENS", 500)
    few = count_baselines(data, text, 700, on_progress=lambda *each: messages.append(each))
    assert few["3-gram of 500 tokens"]["loss_nats"] > all_of_them["3-gram"]["loss_nats"]
    assert messages[-1] == (Message("counting"), 2, 2)
    assert np.array_equal(tokens_of(data["train"], 10), np.asarray(data["train"][0][:10]))


def test_data_of_another_tokenizer_is_rejected(data, texts) -> None:
    other = train(texts[:20], "unigram", 500)
    with pytest.raises(DataError, match="give the data that the model was trained on"):
        count_baselines(data, from_texts(texts[:2], other), 500)


def test_the_data_of_a_run_is_found_at_its_path_or_next_to_the_run(tmp_path: Path) -> None:
    folder, run = tmp_path / "data", tmp_path / "run"
    folder.mkdir()
    (folder / "dataset.json").write_text('{"tokenizer": "3f9a"}')

    def named(path: str, tokenizer: str = "3f9a") -> dict[str, object]:
        return {"data": {"path": path, "tokenizer": tokenizer}}

    assert find_data(named(str(folder)), run) == folder
    assert find_data(named("/gone/data"), run) == folder
    assert find_data(named("/gone/elsewhere"), run) is None
    assert find_data(named(str(folder), "77b0"), run) is None, "it was prepared again"
    assert find_data({"data": None}, run) is None
    assert find_data({}, run) is None
    (folder / "dataset.json").write_text("{")
    assert find_data(named(str(folder)), run) is None
