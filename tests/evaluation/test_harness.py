"""lm-evaluation-harness evaluates a model offline with a local task file."""

import json
import math
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from tests.evaluation.plain_twins import token_nats_plainly

from kotha.errors import KothaError, UsageError
from kotha.evaluation.harness import Answers, run_task
from kotha.generation.plain import continue_plainly
from kotha.generation.settings import SamplingSettings


def test_a_continuation_is_scored_token_by_token(tiny, tokenizer) -> None:
    model = tiny(context_length=32)
    answers = Answers(model, tokenizer)
    context, continuation = "আমি ভাত", " খাই।"
    logprob, greedy = answers.likelihood(context, continuation)
    ids = tokenizer.encode(context + continuation)
    n_asked = len(ids) - len(tokenizer.encode(context))
    nats = token_nats_plainly(model, [answers.end, *ids], 32, 32)
    assert logprob == pytest.approx(-sum(nats[-n_asked:]), abs=1e-4)
    assert greedy is False
    assert answers.likelihood("আমি ভাত ", "খাই।")[0] == pytest.approx(logprob), "the space between is the answer's"


def test_the_likeliest_continuation_is_recognised(tiny, tokenizer) -> None:
    model = tiny(context_length=64)
    answers = Answers(model, tokenizer)
    with torch.no_grad():  # whatever the input, it predicts ক
        model.head.weight.zero_()
        letter = tokenizer.encode("ক")[-1]
        model.head.weight[letter] = 1.0
        model.stack.norm.bias.fill_(1.0)
    assert answers.likelihood("", "ক")[1]
    assert not answers.likelihood("", "খ")[1]


def test_a_long_context_keeps_its_end(tiny, tokenizer) -> None:
    model = tiny(context_length=8)
    answers = Answers(model, tokenizer)
    ids = tokenizer.encode("আমি রোজ সকালে ভাত খাই। সে বই পড়ে।")
    n_asked = len(ids) - len(tokenizer.encode("আমি রোজ সকালে ভাত খাই।"))
    assert len(ids) > 8 >= n_asked
    with torch.no_grad():
        chances = model(torch.tensor([ids[-9:-1]]))[0].log_softmax(-1)
    expected = sum(float(chances[place, ids[place - 8]]) for place in range(8 - n_asked, 8))
    assert answers.likelihood("আমি রোজ সকালে ভাত খাই।", " সে বই পড়ে।")[0] == pytest.approx(expected, abs=1e-4)
    with pytest.raises(UsageError, match="does not fit into the model's context length of 8"):
        answers.likelihood("", "আমি রোজ সকালে ভাত খাই। সে বই পড়ে।")


def test_the_likelihood_of_a_text_and_generation(tiny, tokenizer) -> None:
    model = tiny(context_length=16)
    answers = Answers(model, tokenizer)
    ids = tokenizer.encode("সে বই পড়ে।")
    assert answers.loglikelihood_rolling([SimpleNamespace(args=("সে বই পড়ে।",))])[0] == pytest.approx(
        -sum(token_nats_plainly(model, [answers.end, *ids], 16, 8)), abs=1e-4
    )
    settings = SamplingSettings(temperature=0.0, top_k=None, repetition_penalty=None)
    expected = continue_plainly(model, [answers.end, *ids], 5, settings, ends={answers.end})
    (written,) = answers.generate_until([SimpleNamespace(args=("সে বই পড়ে।", {"until": [], "max_gen_toks": 5}))])
    assert tokenizer.decode([*ids, *expected]) == "সে বই পড়ে।" + written


TASK = """task: {name}
dataset_path: json
dataset_kwargs:
  data_files:
    test: {file}
test_split: test
output_type: {kind}
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
{more}
"""


@pytest.mark.filterwarnings("ignore")
def test_a_task_file_runs_offline(tiny, tokenizer, tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("lm_eval", reason="lm-evaluation-harness is not installed; it is the extra `harness`")
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    rows = [{"question": "আমি ভাত", "answer": "খাই"}, {"question": "সে বই", "answer": "পড়ে"}]
    lines = tmp_path / "questions.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    model = tiny(context_length=32)
    more = "doc_to_choice: ['খাই', 'পড়ে']\nmetric_list:\n  - metric: acc\n"
    file = tmp_path / "choice.yaml"
    file.write_text(TASK.format(name="choice", file=lines, kind="multiple_choice", more=more), encoding="utf-8")
    answers = Answers(model, tokenizer)
    right = 0
    for row in rows:
        chances = {each: answers.likelihood(row["question"], f" {each}")[0] for each in ("খাই", "পড়ে")}
        right += max(chances, key=chances.__getitem__) == row["answer"]
    assert run_task(model, tokenizer, file)["acc"] == right / 2

    whole = tmp_path / "whole.yaml"
    more = "metric_list:\n  - metric: bits_per_byte\n"
    text = TASK.format(name="whole", file=lines, kind="loglikelihood_rolling", more=more)
    whole.write_text(text.replace('doc_to_text: "{{question}}"', 'doc_to_text: ""'), encoding="utf-8")
    nats = -sum(answers.loglikelihood_rolling([SimpleNamespace(args=(row["answer"],)) for row in rows]))
    n_bytes = sum(len(row["answer"].encode()) for row in rows)
    assert run_task(model, tokenizer, whole)["bits_per_byte"] == pytest.approx(nats / math.log(2) / n_bytes)


def test_invalid_task_files_are_rejected(tiny, tokenizer, tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("lm_eval", reason="lm-evaluation-harness is not installed; it is the extra `harness`")
    with pytest.raises(UsageError, match="task file not found"):
        run_task(tiny(), tokenizer, tmp_path / "none.yaml")
    (tmp_path / "empty.yaml").write_text("dataset_path: json\n")
    with pytest.raises(UsageError, match="has no task name"):
        run_task(tiny(), tokenizer, tmp_path / "empty.yaml")
    monkeypatch.setitem(sys.modules, "lm_eval.api.model", None)
    with pytest.raises(KothaError, match=r"pip install 'lm-eval"):
        run_task(tiny(), tokenizer, tmp_path / "empty.yaml")
