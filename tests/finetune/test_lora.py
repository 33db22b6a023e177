"""LoRA: size, correctness and base check; compared with peft if it is installed."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.finetune.conftest import QUICK, moods, write_table
from torch import nn

import kotha
from kotha.artifacts import model_folder as bundle
from kotha.errors import ConfigError, KothaError, UsageError
from kotha.model.config import GPTConfig
from kotha.model.family import build
from kotha.model.lora import LowRankLinear, add_low_rank
from kotha.model.presets import preset
from kotha.training.adapter import FOLDER, WEIGHTS, apply_adapter, merged
from kotha.training.config import TrainConfig
from kotha.training.optim import split_parameters
from kotha.training.plan.memory import MemoryConditions, plan_memory


def scattered(model: Any) -> Any:
    """A model whose LoRA matrices are not zero."""
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, LowRankLinear):
                module.low_rank_up.normal_(std=0.3)
    return model.eval()


@pytest.mark.parametrize("name", ["pocket", "pocket-bert", "pocket-seq2seq", "vit-digits"])
def test_a_merged_adapter_equals_an_applied_one(name: str) -> None:
    torch.manual_seed(0)
    small = {"n_layers": 1, "d_model": 16, "n_heads": 2, "d_ff": 32}
    config = preset(name).replace(**small)
    model = build(config).eval()
    inputs = [torch.randn(2, 1, 28, 28)] if name == "vit-digits" else [torch.randint(99, (2, 7))]
    inputs = inputs * 2 if name == "pocket-seq2seq" else inputs
    before = model(*inputs)
    add_low_rank(model, rank=3, alpha=6.0)
    assert torch.equal(answers(model(*inputs)), answers(before)), "it begins as the model was"
    applied = answers(scattered(model)(*inputs))
    assert not torch.allclose(applied, answers(before), atol=1e-2)
    torch.testing.assert_close(answers(merged(model)(*inputs)), applied, atol=1e-5, rtol=1e-5)
    assert not any(isinstance(each, LowRankLinear) for each in merged(model).modules())


def answers(found: Any) -> torch.Tensor:
    return found if isinstance(found, torch.Tensor) else found.token_logits


def test_a_plain_twin_computes_the_same() -> None:
    torch.manual_seed(0)
    layer = LowRankLinear(nn.Linear(6, 5), rank=2, scale=1.5)
    nn.init.normal_(layer.low_rank_up)
    x = torch.randn(4, 6)
    by_hand = x @ (layer.weight + 1.5 * layer.low_rank_up @ layer.low_rank_down).T + layer.bias
    torch.testing.assert_close(layer(x), by_hand)


def test_training_equals_peft() -> None:
    peft = pytest.importorskip("peft", reason="peft is not installed here; the twin above needs nothing")
    torch.manual_seed(0)
    ours = nn.Sequential(nn.ModuleDict({"blocks": nn.Sequential(nn.Linear(6, 5))}))
    plain = nn.Sequential()
    plain.add_module("layer", nn.Linear(6, 5))
    ours[0]["blocks"][0].load_state_dict(plain.layer.state_dict())  # type: ignore[union-attr]
    add_low_rank(ours, rank=2, alpha=8.0)
    theirs = peft.get_peft_model(plain, peft.LoraConfig(r=2, lora_alpha=8, target_modules=["layer"]))
    layer, other = ours[0]["blocks"][0], plain.layer
    with torch.no_grad():
        other.lora_A["default"].weight.copy_(layer.low_rank_down)  # type: ignore[union-attr,index]
    x, wanted = torch.randn(8, 6), torch.randn(8, 5)
    for model, run in ((ours, layer), (theirs, theirs)):
        optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-2)
        for _ in range(5):
            optimizer.zero_grad()
            ((run(x) - wanted) ** 2).mean().backward()
            optimizer.step()
    torch.testing.assert_close(layer(x), theirs(x), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(layer.merged(), theirs.merge_and_unload().layer.weight, atol=1e-5, rtol=1e-5)


def test_muon_gets_no_lora_matrix_and_frozen_weights_no_optimizer() -> None:
    model = build(preset("pocket").replace(n_layers=1))
    add_low_rank(model, rank=2, alpha=4.0)
    muon, decayed, plain = split_parameters(model, use_muon=True)
    assert not muon and not plain
    assert {name.rpartition(".")[2] for name, _ in decayed} == {"low_rank_down", "low_rank_up"}


def test_the_plan_excludes_frozen_weights() -> None:
    how = MemoryConditions(64, "float32", "cpu", compiled=False)
    whole, narrow = (plan_memory(preset("bangla-58m"), TrainConfig(lora=lora), 4, how) for lora in (None, 8))
    model = build(preset("bangla-58m"), "meta")
    before = sum(each.numel() for each in model.parameters())
    add_low_rank(model, 8, 16.0)
    learning = sum(each.numel() for each in model.parameters() if each.requires_grad)
    assert narrow.weights == whole.weights + 4 * learning == 4 * (before + learning)
    assert narrow.gradients == 4 * learning and narrow.optimizer < 9 * learning + 4096
    assert narrow.total < 0.6 * whole.total


def test_a_rank_as_wide_as_the_matrix_is_rejected() -> None:
    with pytest.raises(ConfigError, match=r"lora=16 must be less than 16, the smaller dimension of stack\.blocks\.0"):
        add_low_rank(build(GPTConfig(vocab_size=9, context_length=4, n_layers=1, d_model=16, n_heads=2)), 16, 16.0)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory, bases: dict[str, Path]) -> dict[str, kotha.Run]:
    """A text model fine-tuned with LoRA, and two classifiers, all with the same base model."""
    folder, base = tmp_path_factory.mktemp("tuned"), bases["gpt"]
    (folder / "texts.txt").write_text("\n\n".join(text for text, _ in moods(40)), encoding="utf-8")
    data = kotha.prepare([folder / "texts.txt"], kotha.load(base).tokenizer, folder / "data")
    table = write_table(folder / "moods.csv", moods(60))
    other = write_table(folder / "two.csv", [row for row in moods(60, seed=4) if row[1] != "মন্দ"])
    return {
        "text": kotha.train(data, start=base, out=folder / "text", lora=4, ema_decay=None, warmup_steps=1, **QUICK),
        "moods": kotha.finetune_classify(table, start=base, out=folder / "moods", lora=4, **QUICK),
        "two": kotha.finetune_classify(other, start=base, out=folder / "two", lora=2, **QUICK),
    }


def test_several_adapters_serve_one_base(tuned: dict[str, kotha.Run], bases: dict[str, Path]) -> None:
    whole = (bases["gpt"] / bundle.WEIGHTS_FILE).stat().st_size
    for name, run in tuned.items():
        folder = run.path / FOLDER
        assert (folder / WEIGHTS).stat().st_size < 0.7 * whole, "of so small a model; the table of words is not in it"
        put_on = kotha.load(bases["gpt"], adapter=run.path if name == "two" else folder)
        kept = kotha.load(run)
        assert put_on.config == kept.config
        ours, others = put_on.model.state_dict(), kept.model.state_dict()
        assert all(torch.equal(ours[each], others[each]) for each in others), "merged, both times, from the same"
        tokens, real = torch.randint(250, (2, 8)), torch.ones(2, 8, dtype=torch.bool)
        applied = apply_adapter(bundle.load(bases["gpt"]), folder)
        torch.testing.assert_close(applied(tokens, real), kept.model(tokens, real), atol=1e-5, rtol=1e-5)
    answer = kotha.load(bases["gpt"], adapter=tuned["two"].path).classify("আজ নদী চমৎকার")
    assert set(answer.probabilities) == {"ভালো", "মাঝারি"}


def test_frozen_weights_do_not_change(tuned: dict[str, kotha.Run], bases: dict[str, Path]) -> None:
    base, kept = bundle.load(bases["gpt"]).model.state_dict(), kotha.load(tuned["text"]).model.state_dict()
    moved = {name for name in base if not torch.equal(base[name], kept[name])}
    assert moved and all(".attention." in name or ".feedforward." in name for name in moved)
    assert all(name.endswith("weight") for name in moved)


def test_another_base_is_rejected(tuned: dict[str, kotha.Run], bases: dict[str, Path], tmp_path: Path) -> None:
    opened = bundle.load(bases["gpt"])
    with torch.no_grad():
        next(opened.model.parameters())[0, 0] += 1
    other = bundle.save(tmp_path / "other", opened.model, opened.tokenizer)
    with pytest.raises(KothaError, match="was trained for a model other than"):
        kotha.load(other, adapter=tuned["moods"].path)
    with pytest.raises(KothaError, match="does not fit"):
        kotha.load(bases["bert"], adapter=tuned["moods"].path)
    with pytest.raises(KothaError, match="is not an adapter"):
        kotha.load(bases["gpt"], adapter=tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(({"rank": wrong}, "") for wrong in (3, -1, 0)),
        ({"format": "else"}, ""),
        *(({"alpha": wrong}, "") for wrong in ("much", 10**400, float("inf"), None)),
        ({"model": {"vocab_size": 1_000_000_000}}, "parameters, but this model has"),
        ({"model": {"n_layers": 1000}}, "1,000 layers"),
    ],
)
def test_a_broken_adapter_is_rejected(
    tuned: dict[str, kotha.Run], bases: dict[str, Path], tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    good = tuned["moods"].path / FOLDER
    (tmp_path / WEIGHTS).write_bytes((good / WEIGHTS).read_bytes())
    about = json.loads((good / "adapter.json").read_text(encoding="utf-8"))
    changed = {**about, **change, "model": {**about["model"], **change.get("model", {})}}
    (tmp_path / "adapter.json").write_text(json.dumps(changed), encoding="utf-8")
    with pytest.raises(KothaError, match=message or r"its config requires|does not describe|must have a rank"):
        kotha.load(bases["gpt"], adapter=tmp_path)


def test_lora_needs_a_base_and_its_tokenizer(
    tuned: dict[str, kotha.Run], bases: dict[str, Path], tmp_path: Path
) -> None:
    data = tuned["text"].path.parent / "data"
    with pytest.raises(
        UsageError, match="lora=4 adapts the weights of a trained model; specify the model to start from"
    ):
        kotha.train(data, preset="pocket", out=tmp_path / "run", lora=4, steps=1)
    with pytest.raises(UsageError, match="have different tokenizers"):
        kotha.train(data, start=bases["bert"], out=tmp_path / "run", lora=4, steps=1)
    assert not (tmp_path / "run").exists()
