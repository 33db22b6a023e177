"""What a model has to beat, on the tokens it is measured on."""

import math
from pathlib import Path

import numpy as np
import pytest

from kotha.artifacts.run_folder import find_data
from kotha.errors import DataError
from kotha.evaluation.ngram import KneserNey
from kotha.evaluation.perplexity import baselines, count_baselines
from kotha.i18n.message import Message
from kotha.text.held_out import HeldOut, from_dataset, from_texts, tokens_of
from kotha.text.tokenizer.trainers import train
from kotha.training.config import TrainConfig
from kotha.training.tasks.task import NextToken


def test_each_knows_more_than_the_one_before(data, tokenizer) -> None:
    text = from_dataset(data, tokenizer)
    found = count_baselines(data, text, vocab_size=700)
    losses = found.references
    assert list(losses) == ["ln V", "unigram", "3-gram", "5-gram"]
    assert losses["ln V"] == math.log(700)
    assert losses["ln V"] > losses["unigram"] > losses["3-gram"] > 0
    assert found.counted_tokens == found.all_tokens == data["train"].info.tokens
    for row in found.rows:
        assert row.perplexity == pytest.approx(math.exp(row.loss_nats))
        assert row.bits_per_byte * text.bytes == pytest.approx(row.loss_nats / math.log(2) * len(text.line))
        assert row.bits_per_character * text.characters == pytest.approx(row.bits_per_byte * text.bytes)


def test_the_first_two_are_the_references_of_a_run(data, tokenizer, tiny) -> None:
    references = NextToken(tiny().config, TrainConfig(), data).references()
    found = count_baselines(data, from_dataset(data, tokenizer), vocab_size=700).references
    assert {name: found[name] for name in references} == pytest.approx(references)


def test_numbers_on_paper() -> None:
    text = HeldOut("paper", np.array([1, 2, 0]), end=0, bytes=6, characters=2, tokenizer="none")
    rows = {row.name: row for row in baselines(np.array([1, 1, 0]), text, vocab_size=4, orders=(1,))}
    assert rows["ln V"].bits_per_byte == pytest.approx(3 * 2 / 6), "two bits a token"
    assert rows["unigram"].loss_nats == pytest.approx(-(math.log(3 / 7) + math.log(1 / 7) + math.log(2 / 7)) / 3)
    counted = KneserNey(np.array([1, 1, 0]), 1, 4, end=0).nats(text.line).mean()
    assert rows["1-gram"].loss_nats == pytest.approx(counted)


def test_of_much_text_the_first_tokens_are_counted(data, tokenizer, monkeypatch) -> None:
    told = []
    text = from_dataset(data, tokenizer)
    all_of_them = count_baselines(data, text, 700)
    monkeypatch.setattr("kotha.evaluation.perplexity.MAX_TOKENS", 500)
    few = count_baselines(data, text, 700, on_progress=lambda *each: told.append(each))
    assert few.counted_tokens == 500 < few.all_tokens
    assert few.references["3-gram"] > all_of_them.references["3-gram"]
    assert told[-1] == (Message("counting"), 2, 2)
    assert np.array_equal(tokens_of(data["train"], 10), np.asarray(data["train"][0][:10]))


def test_tokens_of_another_tokenizer_are_refused(data, texts) -> None:
    other = train(texts[:20], "unigram", 500)
    with pytest.raises(DataError, match="baselines are counted on the tokens of the model"):
        count_baselines(data, from_texts(texts[:2], other), 500)


def test_the_data_of_a_run_is_found_where_it_was_or_beside_it(tmp_path: Path) -> None:
    folder, run = tmp_path / "data", tmp_path / "run"
    folder.mkdir()
    (folder / "dataset.json").write_text('{"tokenizer": "3f9a"}')

    def named(path: str, tokenizer: str = "3f9a") -> dict[str, object]:
        return {"data": {"path": path, "tokenizer": tokenizer}}

    assert find_data(named(str(folder)), run) == folder
    assert find_data(named("/gone/data"), run) == folder
    assert find_data(named("/gone/elsewhere"), run) is None
    assert find_data(named(str(folder), "77b0"), run) is None, "it was prepared anew"
    assert find_data({"data": None}, run) is None
    assert find_data({}, run) is None
    (folder / "dataset.json").write_text("{")
    assert find_data(named(str(folder)), run) is None
