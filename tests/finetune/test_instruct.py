"""From instruction pairs to a model that answers: split by story, chat template, LoRA, resuming, bad input."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.finetune.conftest import SIZES

import kotha
from kotha.artifacts import model_folder as bundle
from kotha.cli.main import FAILED, MISUSED, OK, main
from kotha.errors import CheckpointError, DataError, UsageError
from kotha.finetune.examples import PARTS
from kotha.finetune.instruct import AnswerQuestions
from kotha.finetune.splits import divide_dialogues
from kotha.model.family import build
from kotha.model.presets import preset
from kotha.text.corpus.dialogues import Dialogues, read_dialogues
from kotha.text.tokenizer.chat import ChatTemplate, Turn
from kotha.text.tokenizer.trainers import train as train_tokenizer

NAMES = ["রহিম", "মিনা", "করিম", "সীমা"]
FRUITS = ["আম", "জাম", "লিচু"]
QUICK: dict[str, Any] = {"steps": 4, "batch_size": 4, "evaluate_every": 2}


def write_pairs(file: Path, stories: int = 10) -> Path:
    """Two questions about each story; each answer is one word of the text."""
    rows = []
    for story in range(stories):
        name, fruit = NAMES[story % 4], FRUITS[story % 3]
        text = f"{name} {story}টি {fruit} পেল।"
        rows.append({"instruction": f"{text} কে পেল?", "answer": f"{name}।", "story": story})
        rows.append({"instruction": f"{text} কী পেল?", "answer": f"{fruit}।", "story": story})
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pairs(tmp_path_factory.mktemp("pairs") / "pairs.jsonl")


def base(folder: Path, kind: str = "unigram") -> Path:
    texts = [f"{name} {fruit} পেল। কে কী পেল? ০১২৩৪৫৬৭৮৯0123456789টি" for name in NAMES for fruit in FRUITS]
    tokenizer = train_tokenizer(texts, kind, 600)
    torch.manual_seed(3)
    model = build(preset("pocket").replace(**{**SIZES, "vocab_size": tokenizer.vocab_size, "context_length": 48}))
    return bundle.save(folder, model, tokenizer)


@pytest.fixture(scope="module")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return base(tmp_path_factory.mktemp("base") / "gpt")


def test_groups_stay_together_and_copies_are_used_once(pairs: Path) -> None:
    data = read_dialogues(pairs)
    parts = divide_dialogues(data, share=0.2, seed=1)
    stories = {name: set(getattr(parts, name).groups) for name in PARTS}
    assert [len(stories[name]) for name in ("train", "validation", "test")] == [6, 2, 2]
    assert len(parts.train) + len(parts.validation) + len(parts.test) == 20
    assert (
        not stories["train"] & (stories["validation"] | stories["test"]) and not stories["validation"] & stories["test"]
    )
    assert divide_dialogues(data, share=0.2, seed=1) == parts != divide_dialogues(data, share=0.2, seed=2)
    twice = Dialogues(data.turns * 2, data.groups + tuple(f"{group} again" for group in data.groups))
    again = divide_dialogues(twice, share=0.2)
    assert len(again.train) + len(again.validation) + len(again.test) == 20
    given = divide_dialogues(data, data.chosen([0, 1]), share=0.2)
    assert data.turns[0] not in given.train.turns + given.validation.turns
    with pytest.raises(UsageError, match=r"held_out=0\.9"):
        divide_dialogues(data, share=0.9)
    with pytest.raises(DataError, match="cannot be split"):
        divide_dialogues(data.chosen([0, 1]))


def test_from_examples_to_answers_with_the_chat_template(gpt: Path, pairs: Path, tmp_path: Path, capsys: Any) -> None:
    run = tmp_path / "taught"
    words = ["--set", *(f"{name}={value}" for name, value in QUICK.items())]
    code = main(["finetune", "instruct", str(pairs), "--from", str(gpt), "--out", str(run), "--json", *words])
    output = capsys.readouterr()
    assert code == OK, output.err
    summary = json.loads(output.out)
    assert (
        summary["before"]["instruction_tuned"] is False
        and summary["instruction_tuned"] is True
        and summary["examples"] == 2
    )
    assert (
        "fields: instruction, answer (guessed)" in output.err
        and "before training: 0.0% of 2 unseen questions" in output.err
    )
    tokenizer = bundle.load(gpt).tokenizer
    assert tokenizer is not None
    opened = bundle.load(run)
    assert opened.chat == ChatTemplate.of(tokenizer)
    assert kotha.load(run).chat().remark is None, "taught, whatever its scores say"
    assert main(["evaluate", str(run), str(pairs), "--json"]) == OK
    score = json.loads(capsys.readouterr().out)
    assert score["examples"] == 20 and "most frequent answer" in score["baselines"] and len(score["replies"]) == 20
    assert main(["evaluate", str(run), str(run / "examples" / "test.jsonl")]) == OK, (
        "its own held-out part is such a file"
    )
    assert "answered correctly" in capsys.readouterr().out
    with pytest.raises(CheckpointError, match="cannot be resumed without its examples"):
        (run / "examples" / "train.jsonl").unlink()
        kotha.finetune_instruct(out=run, resume=True)


def test_a_run_that_was_stopped_goes_on_as_if_it_never_was(gpt: Path, pairs: Path, tmp_path: Path) -> None:
    whole = kotha.finetune_instruct(pairs, start=gpt, out=tmp_path / "whole", **QUICK)
    kotha.finetune_instruct(pairs, start=gpt, out=tmp_path / "half", **{**QUICK, "steps": 2, "schedule": "constant"})
    again = kotha.finetune_instruct(pairs, start=gpt, out=tmp_path / "again", **QUICK)
    ours, theirs = (torch.cat([each.flatten() for each in run.model.model.parameters()]) for run in (whole, again))
    assert torch.equal(ours, theirs), "the same seed"
    longer = kotha.finetune_instruct(out=tmp_path / "half", resume=True, steps=4)
    assert longer.summary["steps"] == 4 and longer.summary["before"] == whole.summary["before"]
    assert AnswerQuestions().read_parts(tmp_path / "half") == AnswerQuestions().read_parts(tmp_path / "whole")


def test_lora_learns_beside_the_weights_and_brings_the_template_to_its_base(
    gpt: Path, pairs: Path, tmp_path: Path
) -> None:
    run = kotha.finetune_instruct(pairs, start=gpt, out=tmp_path / "lora", lora=2, **QUICK)
    adapted = kotha.load(gpt, adapter=run)
    assert adapted.bundle.chat is not None and kotha.load(gpt).bundle.chat is None
    tokens = torch.tensor([[1, 2, 3]])
    torch.testing.assert_close(adapted.model(tokens), run.model.model(tokens), atol=1e-5, rtol=1e-5)


def test_chat_tokens_are_added_to_the_tokenizer_but_not_with_lora(pairs: Path, tmp_path: Path) -> None:
    bare = base(tmp_path / "bare", "wordpiece")
    heard: list[Any] = []
    run = kotha.finetune_instruct(pairs, start=bare, out=tmp_path / "taught", on_remark=heard.append, **QUICK)
    assert any("had no chat tokens; they were added" in str(remark) for remark in heard)
    opened, before = bundle.load(run.path), bundle.load(bare)
    assert opened.chat is not None and opened.config.vocab_size == before.config.vocab_size + 3  # type: ignore[union-attr]
    with pytest.raises(UsageError, match="has no chat tokens"):
        kotha.finetune_instruct(pairs, start=bare, out=tmp_path / "no", lora=2, **QUICK)
    assert not (tmp_path / "no").exists()


def test_invalid_conversations_and_models_are_rejected(
    bases: dict[str, Path], gpt: Path, pairs: Path, tmp_path: Path, capsys: Any
) -> None:
    out = ["--out", str(tmp_path / "run")]
    texts = tmp_path / "texts.jsonl"
    texts.write_text('{"text": "নদী", "label": "ক"}\n', encoding="utf-8")
    for words, code, said in (
        (["finetune", "instruct", *out], MISUSED, "give data and a model to start from"),
        (
            ["finetune", "instruct", str(pairs), "--from", str(bases["bert"]), *out],
            MISUSED,
            "is a bert model; only a gpt",
        ),
        (
            ["finetune", "instruct", str(texts), "--from", str(gpt), *out],
            FAILED,
            "none of the usual field names of an instruction",
        ),
        (["finetune", "instruct", *out, "--resume"], FAILED, "run"),
    ):
        assert main(words) == code and said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_turn_of_the_talk_is_written_as_it_was_learned(gpt: Path, pairs: Path, tmp_path: Path) -> None:
    run = kotha.finetune_instruct(pairs, start=gpt, out=tmp_path / "taught", **QUICK)
    talk, template = run.model.chat(), run.model.bundle.chat
    assert template is not None and run.model.tokenizer is not None
    from kotha.generation.settings import SamplingSettings

    request = talk.ask("কে পেল?", 4, SamplingSettings())
    assert list(request.prompt) == template.prompt(run.model.tokenizer, [Turn("user", "কে পেল?")])


def test_trained_answers_are_given_and_end(gpt: Path, pairs: Path, tmp_path: Path) -> None:
    how = {"steps": 150, "batch_size": 8, "learning_rate": 1e-2, "evaluate_every": 150, "patience": None}
    run = kotha.finetune_instruct(pairs, start=gpt, out=tmp_path / "taught", **how)
    learned = run.path / "examples" / "train.jsonl"
    before, after = (kotha.load(model).evaluate(learned) for model in (gpt, run.path))
    assert before.exact_match == 0 and after.exact_match > 0.6, "a name or a fruit by chance: less than a third"
    assert all(len(reply.answer) < 12 for reply in after.replies), "its turn ends with the answer"
