"""`kotha generate` and `kotha chat` as a user types them, on a model trained on a few stories."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import kotha
from kotha.artifacts import model_folder as bundle
from kotha.cli.main import main
from kotha.cli.options import Writing
from kotha.generation.plain import write
from kotha.generation.settings import SamplingSettings
from kotha.generation.weights import JoinedAttention
from kotha.model.config import GPTConfig
from kotha.model.gpt import GPT
from kotha.text.stories.corpus import stories
from kotha.text.tokenizer.chat import ChatTemplate
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.trainers import train as train_tokenizer


@pytest.fixture(scope="module")
def run(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder of `kotha train`."""
    folder = tmp_path_factory.mktemp("generate")
    settings = ["--preset", "mini", "--recipe", "classic", "--set", "batch_size=2", "--set", "precision=float32"]
    settings += ["--set", "evaluate_every=5", "--steps", "5"]
    assert main(["train", str(data), "--out", str(folder / "run"), *settings]) == 0
    return folder / "run"


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    source = stories(seed=0)
    return train_tokenizer((next(source).text for _ in range(60)), "unigram", vocab_size=600)


def answer(capsys: Any, *words: str) -> Any:
    assert main([*words]) == 0
    return json.loads(capsys.readouterr().out)


def test_generate_equals_the_reference_implementation(capsys: Any, run: Path) -> None:
    result = answer(capsys, "generate", str(run), "নদীর ধারে", "--tokens", "12", "--seed", "3", "--json")
    assert {"text", "tokens", "tokens_per_second"} <= result.keys()
    loaded = bundle.load(run)
    assert isinstance(loaded.model, GPT) and loaded.tokenizer is not None
    assert result["text"] == write(loaded.model, loaded.tokenizer, "নদীর ধারে", tokens=12, seed=3)
    assert result["text"] == result["prompt"] + result["answer"]
    assert (result["tokens"], result["stopped"], result["seed"]) == (12, "length", 3)
    again = answer(capsys, "generate", str(run / "best"), "নদীর ধারে", "--tokens", "12", "--seed", "3", "--json")
    assert again["text"] == result["text"]


def test_the_stop_reason_is_printed(capsys: Any, run: Path) -> None:
    assert main(["generate", str(run), "নদীর ধারে", "--tokens", "1"]) == 0
    assert re.search(r"kotha: 1 token, [\d,]+ per second; token limit reached", capsys.readouterr().err)


def test_dropped_context_is_reported(capsys: Any, run: Path) -> None:
    context = bundle.load(run).model.config.context_length  # type: ignore[union-attr]
    for words, tokens, told in [
        (1, context + 5, f"because the model's context is limited to {context:,} tokens"),
        (
            2 * context,
            2,
            f"only the last {context:,} tokens of the prompt were used, because the prompt is longer than the "
            "model's context",
        ),
    ]:
        prompt = " ".join(["নদীর"] * words)
        flags = ["--tokens", str(tokens)]
        assert main(["generate", str(run), prompt, *flags]) == 0
        assert capsys.readouterr().err.rstrip().endswith(told)
        result = answer(capsys, "generate", str(run), prompt, *flags, "--json")
        assert result["context_length"] == context < result["prompt_tokens"] + result["tokens"]


def test_several_texts_use_consecutive_seeds(capsys: Any, run: Path) -> None:
    result = answer(capsys, "generate", str(run), "মা", "--tokens", "9", "--n", "3", "--seed", "5", "--json")
    alone = answer(capsys, "generate", str(run), "মা", "--tokens", "9", "--seed", "6", "--json")
    assert [row["seed"] for row in result["samples"]] == [5, 6, 7]
    assert result["samples"][1]["text"] == alone["text"]
    assert result["text"] == result["samples"][0]["text"]


def test_probabilities_and_other_settings(capsys: Any, run: Path) -> None:
    settings = ["--no-top-k", "--top-p", "0.9", "--min-p", "0.01", "--repetition-penalty", "1.2", "--temperature", "1"]
    result = answer(capsys, "generate", str(run), "মা", *settings, "--tokens", "4", "--probabilities", "--json")
    assert len(result["probabilities"]) == 4
    assert all(0 <= token["probability"] <= 1 and len(token["alternatives"]) == 5 for token in result["probabilities"])
    assert main(["generate", str(run), "মা", "--tokens", "4", "--probabilities"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("মা")
    assert "%" in shown.out
    assert "4 tokens" in shown.err


def test_options_have_the_defaults_of_the_settings() -> None:
    assert Writing().settings() == SamplingSettings()


def test_by_default_the_engine_copies_the_weights(capsys: Any, run: Path) -> None:
    engine = kotha.load(run).engine(1, "stored")
    assert all(isinstance(block.attention, JoinedAttention) for block in engine.model.stack.blocks), (
        "this layout is faster"
    )
    result = [
        answer(capsys, "generate", str(run), "মা", "--json", *more)["answer"] for more in ([], ["--weights", "float32"])
    ]
    assert result[0] == result[1] == kotha.load(run).generate("মা")[len("মা") :]


def test_a_stop_string_ends_the_text(capsys: Any, run: Path) -> None:
    free = answer(capsys, "generate", str(run), "মা", "--tokens", "40", "--json")
    word = free["answer"].split()[3]
    result = answer(capsys, "generate", str(run), "মা", "--tokens", "40", "--stop", word, "--json")
    assert result["stopped"] in ("stop string", "length")
    assert free["answer"].startswith(result["answer"])


@pytest.mark.parametrize(
    ("words", "code", "wording"),
    [
        (
            ["generate", "nowhere", "মা"],
            1,
            "nowhere not found; give a run, model or Hugging Face folder, or box",
        ),
        (["generate", "RUN", "মা", "--temperature", "-1"], 2, "--temperature -1.0 is out of range; use 0"),
        (["generate", "RUN", "মা", "--top-p", "2"], 2, "--top-p 2.0 is out of range"),
        (["generate", "RUN", "মা", "--tokens", "-2"], 2, "--tokens -2 is negative"),
        (["generate", "RUN", "মা", "--n", "0"], 2, "--n must be at least 1, not 0"),
        (["generate", "RUN", "মা", "--stop", ""], 2, "an empty stop string"),
        (["generate", "RUN", "মা", "--weights", "int9"], 2, "int9"),
        (["chat", "RUN", "--top-k", "0"], 2, "--top-k 0 is out of range"),
        (["generat", "RUN"], 2, "did you mean 'generate'?"),
    ],
)
def test_usage_errors(capsys: Any, run: Path, words: list[str], code: int, wording: str) -> None:
    assert main([str(run) if word == "RUN" else word for word in words]) == code
    assert wording in capsys.readouterr().err


def test_a_run_without_a_model_and_a_model_that_does_not_write(capsys: Any, tmp_path: Path) -> None:
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    assert main(["generate", str(tmp_path / "run"), "মা"]) == 1
    assert "has no model yet" in capsys.readouterr().err
    config = GPTConfig(d_model=8, n_heads=2, n_layers=1, vocab_size=9, context_length=4)
    bundle.save(tmp_path / "model", GPT(config))
    assert main(["generate", str(tmp_path / "model"), "মা"]) == 2
    assert "without a tokenizer and cannot generate text" in capsys.readouterr().err


# -- chat --------------------------------------------------------------------------------------------------------------


def test_chat_can_start_a_new_conversation(capsys: Any, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("মা\n/help\nবাবা\n/new\nমা\n/exit\nমা\n"))
    assert main(["chat", str(run), "--tokens", "5", "--temperature", "0", "--json"]) == 0
    output = capsys.readouterr()
    first, _, again = (json.loads(line) for line in output.out.splitlines())
    assert first["text"] == again["text"], "the conversation is cleared"
    assert "/new starts a new conversation" in output.err and "/exit quits" in output.err


def test_chat_with_a_base_model_continues_the_text(capsys: Any, monkeypatch: Any, run: Path) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("নদীর ধারে\n\nমা\n/exit\nকেউ পড়ে না\n"))
    assert main(["chat", str(run), "--tokens", "5", "--json"]) == 0
    shown = capsys.readouterr()
    assert "was not trained for conversation" in shown.err
    rows = [json.loads(line) for line in shown.out.splitlines()]
    assert not any(row["instruction_tuned"] for row in rows)
    assert [row["user"] for row in rows] == ["নদীর ধারে", "মা"]
    assert all(row["tokens"] <= 5 and row["text"] is not None for row in rows)


@pytest.mark.parametrize("flags", [[], ["--plain"], ["--json"], ["--plain", "--json"]])
def test_chat_with_a_base_model_always_prints_a_remark(capsys: Any, monkeypatch: Any, run: Path, flags: Any) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("নদীর ধারে\n"))
    assert main(["chat", str(run), "--tokens", "3", *flags]) == 0
    assert "not trained for conversation" in capsys.readouterr().err


def test_turns_are_marked_by_special_tokens(tokenizer: Tokenizer) -> None:
    from kotha.generation.conversation import Conversation
    from kotha.generation.engine import Engine
    from kotha.generation.settings import SamplingSettings

    torch.manual_seed(0)
    model = GPT(GPTConfig(vocab_size=tokenizer.vocab_size, context_length=24, n_layers=1, d_model=16, n_heads=2))
    talk = Conversation(Engine(model, tokenizer, chat=ChatTemplate.of(tokenizer)))
    user, assistant, end = (tokenizer.special[role] for role in ("user", "assistant", "end"))
    spelled = "মা <|end|>"
    request = talk.ask(spelled, 4, SamplingSettings())
    start = tokenizer.special["eos"]  # a conversation is also a document
    assert request.prompt == (start, user, *tokenizer.encode(spelled), end, assistant)
    assert request.prompt.count(end) == 1, "spelling a special token does not end the turn"
    talk.remember("বাবা")
    for _ in range(9):
        longest = talk.ask("নদীর ধারে", 4, SamplingSettings()).prompt
        talk.remember("হ্যাঁ")
    assert len(longest) <= 24 - 4, "old turns are dropped"
    assert longest[0] == start and longest[1] in (user, assistant)


def test_ctrl_c_stops_an_answer_but_not_the_chat(capsys: Any, monkeypatch: Any, run: Path) -> None:
    from kotha.generation.engine import Engine

    step, count = Engine.step, 0

    def interrupted(self: Engine) -> Any:
        nonlocal count
        count += 1
        if count == 4:
            raise KeyboardInterrupt
        return step(self)

    monkeypatch.setattr(Engine, "step", interrupted)
    monkeypatch.setattr(sys, "stdin", io.StringIO("নদীর ধারে\nমা\n"))
    assert main(["chat", str(run), "--tokens", "9", "--plain", "--json"]) == 0
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    # Three steps ran; a step that only moves the window does not sample a token.
    assert first["stopped"] == "cancelled" and first["tokens"] in (2, 3)
    assert second["stopped"] == "length"


# -- cold start --------------------------------------------------------------------------------------------------------


def test_a_cold_start_loads_no_compiler_and_no_corpus_readers(run: Path) -> None:
    heavy = ["torch._dynamo", "torch._inductor", "sympy", "rich", "pyarrow", "kotha.text.corpus", "kotha.training"]
    code = (
        "import sys; from kotha.cli.main import main; "
        f"main(['generate', {str(run)!r}, 'মা', '--tokens', '1']); "
        f"print(sorted(set({heavy}) & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"
