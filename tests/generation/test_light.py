"""Generation without torch: the same text as with torch; torch is used where this path is not supported."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from tests.generation.conftest import LAYOUTS, REMOVED, tiny
from tests.text.conftest import trained

import kotha
from kotha.api import engine as api
from kotha.artifacts import model_folder as bundle
from kotha.cli.main import main
from kotha.errors import KothaError
from kotha.generation import light
from kotha.generation.compilation import native
from kotha.generation.engine import Engine
from kotha.generation.request import Request
from kotha.generation.settings import SamplingSettings
from kotha.model.gpt import GPT
from kotha.model.pruning import remove_heads
from kotha.storage import bundled

pytestmark = pytest.mark.skipif(native() is None, reason="no C compiler on this machine")

SETTINGS = [
    SamplingSettings(temperature=0),
    SamplingSettings(seed=3),
    SamplingSettings(seed=4, temperature=1.3, top_k=None),
    SamplingSettings(seed=5, top_k=None, top_p=0.9),
    SamplingSettings(seed=6, min_p=0.05, repetition_penalty=None),
    SamplingSettings(seed=2**40, top_k=5, repetition_penalty=1.4),
]
LONG = "নদীর ধারে একটি ছোট গ্রাম ছিল, আর সেখানে থাকত এক জেলে। " * 60


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(light, "_GPUS", [])


def saved(folder: Path, model: GPT, **more: Any) -> Path:
    return bundle.save(folder / "model", model, trained("unigram"), **more)


def light_engine(folder: Path, max_batch: int = 1) -> Engine:
    opened = light.light_model(folder)
    assert opened is not None
    model, tokenizer, chat = opened
    return Engine(model, tokenizer, max_batch=max_batch, chat=chat)


# -- the same text -----------------------------------------------------------------------------------------------------


def test_the_bundled_model_writes_the_same_text_as_in_torch() -> None:
    """The comparison uses torch's decoder, not only weights that torch has loaded."""
    prompts = ["আমি", "", "বৃষ্টির দিনে খিচুড়ি", LONG]
    requests = [Request(prompt=prompts[place % 4], tokens=8, settings=each) for place, each in enumerate(SETTINGS)]
    in_torch = kotha.load(device="cpu").engine(2, None).generate(requests)
    found = light_engine(bundled.FOLDER, 2).generate(requests)
    assert [result.text for result in found] == [result.text for result in in_torch]
    assert [result.prompt_tokens for result in found] == [result.prompt_tokens for result in in_torch]


@pytest.mark.parametrize(("layout", "removed"), [*((each, []) for each in LAYOUTS), *REMOVED.items()])
@pytest.mark.parametrize("stored", ["float32", "float16", "int8"])
def test_every_layout_and_type_equals_the_engine_of_a_loaded_model(
    layout: str, removed: list[str], stored: Any, tmp_path: Path
) -> None:
    model = tiny(layout, context_length=12)
    folder = saved(tmp_path, remove_heads(model, removed) if removed else model, stored=stored)
    requests = [Request(prompt="মা", tokens=20, settings=each, alternatives=3) for each in SETTINGS]
    found = light_engine(folder, 3).generate(requests)
    expected = kotha.load(folder, device="cpu").engine(3, "stored").generate(requests)
    assert [(each.ids, each.text, each.written) for each in found] == [
        (each.ids, each.text, each.written) for each in expected
    ]


COMMANDS = [
    ["আমি", "--tokens", "20"],
    ["আমি", "--tokens", "12", "--temperature", "0"],
    ["আমি", "--tokens", "12", "--temperature", "1.2", "--no-top-k", "--top-p", "0.9", "--seed", "7", "--json"],
    ["নদীর ধারে", "--tokens", "12", "--min-p", "0.05", "--no-repetition-penalty", "--n", "2", "--json"],
    ["নদীর ধারে", "--tokens", "30", "--stop", "।", "--json"],
    ["নদীর ধারে", "--tokens", "4", "--probabilities"],
    ["box", "", "--tokens", "6", "--probabilities", "--json"],
    [LONG, "--tokens", "3", "--json"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words)[-40:])
def test_the_command_prints_the_same_with_torch(words: list[str], capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def printed() -> Any:
        assert main(["generate", *words]) == 0
        out = capsys.readouterr().out
        if "--json" not in words:
            return out
        row = json.loads(out)
        for each in (row, *row.get("samples", [])):
            del each["tokens_per_second"]
        return row

    without = printed()
    monkeypatch.setattr(api, "light_model", lambda folder: None)
    assert printed() == without


@pytest.mark.parametrize("command", ["generate", "chat"])
def test_the_bundled_model_writes_without_importing_torch(command: str) -> None:
    words = ["--tokens", "3"] if command == "chat" else ["আমি", "--tokens", "3"]
    code = (
        f"import sys; from kotha.generation import light; light._GPUS = []; from kotha.cli.main import main; "
        f"main([{command!r}, *{words!r}]); print(sorted({{'torch', 'rich'}} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], input="মা\n", capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"
    assert len(done.stdout) > 5


def test_a_chat_is_the_same(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def said() -> list[str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO("মা কোথায়?\nকেন?\n"))
        assert main(["chat", "--tokens", "8", "--json"]) == 0
        return [json.loads(line)["text"] for line in capsys.readouterr().out.splitlines()]

    without = said()
    monkeypatch.setattr(api, "light_model", lambda folder: None)
    assert said() == without


# -- what needs torch --------------------------------------------------------------------------------------------------


def test_a_gpu_a_missing_compiler_and_other_types_of_weights_need_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = saved(tmp_path, tiny())
    assert light.light_model(folder) is not None
    assert light.light_model(saved(tmp_path / "narrow", tiny(), stored="bfloat16")) is None
    assert light.light_model(bundle.save(tmp_path / "silent", tiny())) is None, "no tokenizer"
    with monkeypatch.context() as patch:
        patch.setattr(light, "native", lambda: None)
        assert light.light_model(folder) is None
    monkeypatch.setattr(light, "_GPUS", [tmp_path])
    assert light.light_model(folder) is None


def test_narrower_weights_are_made_by_torch(tmp_path: Path) -> None:
    engine = api.open_engine(saved(tmp_path, tiny()), 1, "int8")
    assert isinstance(engine.model, GPT)
    assert not isinstance(api.open_engine(tmp_path / "model").model, GPT)


@pytest.mark.parametrize("name", ["stack.blocks.0.attention.key.weight", "stack.norm.bias", "head.weight", "odd"])
@pytest.mark.parametrize("change", ["gone", "longer", "narrower", "NaN"])
def test_a_damaged_folder_is_left_to_torch_which_reports_it(name: str, change: str, tmp_path: Path) -> None:
    folder = saved(tmp_path, tiny())
    weights = safetensors.numpy.load_file(folder / bundle.WEIGHTS_FILE)
    array = weights.pop(name, np.zeros(3, np.float32))
    if change == "NaN":
        array[0] = np.nan
    changed = {"longer": np.concatenate([array, array]), "narrower": array.astype(np.float16), "NaN": array}
    if change == "gone" and name not in ("head.weight", "odd"):
        pass
    elif change == "gone":
        weights.pop("tokens.weight")
    else:
        weights[name] = changed[change]
    safetensors.numpy.save_file(weights, folder / bundle.WEIGHTS_FILE)
    assert light.light_model(folder) is None
    with pytest.raises(KothaError):
        api.open_engine(folder)
