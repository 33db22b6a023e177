"""Export to Hugging Face, comparison with ``transformers``, import; and folders written by transformers."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch
import transformers
from safetensors.torch import load_file, save_file
from tests.export.models import ARCHITECTURES, CONFIGS, VOCABULARY, shaken

from kotha.artifacts.model_folder import Bundle, save, unique_weights
from kotha.errors import KothaError, UsageError
from kotha.export.huggingface.check import check_hf
from kotha.export.huggingface.export import write_hf
from kotha.export.huggingface.import_ import import_hf
from kotha.export.parity import AWKWARD_LINES, built_in_lines
from kotha.export.targets import export
from kotha.generation.engine import Engine
from kotha.generation.request import Request
from kotha.generation.settings import SamplingSettings
from kotha.model.family import build
from kotha.text.prepare import PrepareOptions, prepare
from kotha.text.tokenizer.chat import ChatTemplate, Turn
from kotha.text.tokenizer.importers import import_tokenizer
from kotha.text.tokenizer.prompt import encode_prompt, start_of_document
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.trainers import train

FEW = built_in_lines(30)
SMALL = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
LLAMA = {**SMALL, "intermediate_size": 20, "num_key_value_heads": 1, "max_position_embeddings": 216}
MARIAN: dict[str, Any] = {
    **{"vocab_size": 50, "d_model": 16, "encoder_layers": 2, "decoder_layers": 1, "scale_embedding": True},
    **{"encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24},
    **{"max_position_embeddings": 216, "pad_token_id": 49, "eos_token_id": 0, "decoder_start_token_id": 49},
    **{"forced_eos_token_id": None},
}
GPT2 = {"n_layer": 2, "n_head": 2, "n_embd": 16, "vocab_size": 50, "n_positions": 216}
GPT2 |= {"bos_token_id": 0, "eos_token_id": 0}
VIT = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
VIT |= {"image_size": 8, "patch_size": 4}


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def taught(name: str) -> Bundle:
    bundle = shaken(CONFIGS[name])
    assert bundle.tokenizer is not None
    return replace(bundle, chat=ChatTemplate.of(bundle.tokenizer))


def same_weights(one: Bundle, other: Bundle) -> bool:
    ours, theirs = unique_weights(one.model), unique_weights(other.model)
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


# -- export, comparison and import ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONFIGS)
def test_a_model_is_exported_verified_and_imported_again(name: str, tmp_path: Path) -> None:
    bundle = shaken(CONFIGS[name])
    layout = write_hf(bundle, tmp_path / "hf")
    assert layout.architecture == ARCHITECTURES[name]
    report = check_hf(tmp_path / "hf", bundle, layout, FEW)
    assert report.passed, report.failures
    assert report.max_logit_difference is not None
    assert report.max_logit_difference <= 1e-4
    assert report.lines == (0 if name == "vit" else len(FEW))
    back = import_hf(tmp_path / "hf")
    assert back.bundle.config == bundle.config
    assert same_weights(back.bundle, bundle)
    assert bundle.tokenizer is None or back.bundle.tokenizer is not None
    assert save(tmp_path / "back", back.bundle.model, back.bundle.tokenizer).is_dir()


def test_parity_detects_a_changed_weight(tmp_path: Path) -> None:
    bundle = shaken(CONFIGS["course"])
    layout = write_hf(bundle, tmp_path / "hf")
    with torch.no_grad():
        bundle.model.get_parameter("stack.blocks.1.attention.key.weight")[3, 5] += 1.0
    report = check_hf(tmp_path / "hf", bundle, layout, FEW[:3])
    assert "logits differ" in str(report.failures[0])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_narrower_weights_are_the_rounded_ones(dtype: Any, tmp_path: Path) -> None:
    bundle = shaken(CONFIGS["qwen3"])
    layout = write_hf(bundle, tmp_path / "hf", dtype)
    rounded = Bundle(bundle.model.to(getattr(torch, dtype)), bundle.tokenizer)
    assert check_hf(tmp_path / "hf", rounded, layout, FEW[:3]).passed
    assert same_weights(import_hf(tmp_path / "hf").bundle, rounded)


def test_an_export_is_compared_as_rounded_and_the_model_is_not_changed(tmp_path: Path) -> None:
    bundle = shaken(CONFIGS["qwen3"])
    before = {name: weight.clone() for name, weight in unique_weights(bundle.model).items()}
    report = export(bundle, "hf", tmp_path / "hf", weights="bfloat16", lines=FEW[:3])
    assert report.checked and report.passed, report.failures
    assert (report.architecture, report.weights) == ("Qwen3ForCausalLM", "bfloat16")
    assert ["rounded to bfloat16" in str(remark) for remark in report.remarks] == [True]
    assert all(torch.equal(before[name], weight) for name, weight in unique_weights(bundle.model).items())


def test_an_unknown_weight_type_or_format_is_rejected_before_writing(tmp_path: Path) -> None:
    bundle = shaken(CONFIGS["qwen3"])
    with pytest.raises(UsageError, match="weight type 'float8' is not supported by this format; did you mean 'float"):
        export(bundle, "hf", tmp_path / "hf", weights="float8")
    with pytest.raises(UsageError, match=r"unknown export target 'tar'; known: gguf, hf, onnx, web$"):
        export(bundle, "tar", tmp_path / "hf")  # type: ignore[arg-type]
    assert not any(tmp_path.iterdir())


def test_a_weight_too_large_for_float16_is_refused(tmp_path: Path) -> None:
    bundle = shaken(CONFIGS["qwen3"])
    with torch.no_grad():
        bundle.model.get_parameter("tokens.weight")[0, 0] = 1e6
    with pytest.raises(KothaError, match=r"tokens.weight contains 1,000,000, too large for float16"):
        write_hf(bundle, tmp_path / "hf", dtype="float16")
    assert not (tmp_path / "hf").exists()


def test_a_bias_that_was_trained_elsewhere_is_kept(tmp_path: Path) -> None:
    write_hf(shaken(CONFIGS["course"]), tmp_path / "hf")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "hf")
    with torch.no_grad():
        theirs.transformer.h[0].attn.c_attn.bias[3] = 0.5
    theirs.save_pretrained(tmp_path / "trained")
    found = import_hf(tmp_path / "trained").bundle
    assert found.config.attention_bias
    assert found.model.get_parameter("stack.blocks.0.attention.query.bias")[3] == 0.5


def test_a_folder_saved_again_by_transformers_can_be_imported(tmp_path: Path) -> None:
    bundle = taught("course")
    write_hf(bundle, tmp_path / "hf")
    transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "hf").save_pretrained(tmp_path / "again")
    transformers.AutoTokenizer.from_pretrained(tmp_path / "hf").save_pretrained(tmp_path / "again")
    back = import_hf(tmp_path / "again").bundle
    assert back.config == bundle.config
    assert same_weights(back, bundle)
    assert back.tokenizer is not None
    assert bundle.tokenizer is not None
    assert [back.tokenizer.encode(line) for line in FEW] == [bundle.tokenizer.encode(line) for line in FEW]


@pytest.mark.parametrize("kind", ["bpe", "wordpiece", "char"])
def test_every_kind_of_tokenizer_opens_in_transformers(kind: Any, tmp_path: Path) -> None:
    tokenizer = train(built_in_lines(), kind, VOCABULARY)
    bundle = Bundle(shaken(CONFIGS["qwen3"]).model, tokenizer)
    write_hf(bundle, tmp_path / "hf")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    for line in FEW:
        ids = theirs(line, add_special_tokens=False, split_special_tokens=True, truncation=False, verbose=False)
        assert ids["input_ids"] == tokenizer.encode(line), line
    assert {role: getattr(theirs, f"{role}_token_id") for role in ("eos", "pad", "mask")} == {
        role: tokenizer.special[role] for role in ("eos", "pad", "mask")
    }
    assert theirs.model_max_length == 216


@pytest.mark.parametrize("name", ["gpt2", "qwen3"])
def test_a_prompt_has_the_same_ids_and_continuation_in_transformers(name: str, tmp_path: Path) -> None:
    bundle = shaken(CONFIGS[name])
    tokenizer = bundle.tokenizer
    assert tokenizer is not None
    write_hf(bundle, tmp_path / "hf")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "hf").eval()
    reader = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    prompt = "নদীর ধারে"
    read = reader(prompt, return_tensors="pt")
    assert read["input_ids"][0].tolist() == [tokenizer.special["eos"], *tokenizer.encode(prompt)]
    plain = {"do_sample": False, "max_new_tokens": 12, "pad_token_id": 0}
    written = theirs.generate(**read, **plain)[0, read["input_ids"].shape[1] :]
    greedy = SamplingSettings(temperature=0.0, repetition_penalty=None)
    [ours] = Engine(bundle.model, tokenizer).generate([Request(prompt=prompt, tokens=12, settings=greedy)])  # type: ignore[arg-type]
    assert written.tolist()[: ours.tokens] == list(ours.ids) and ours.tokens
    assert (reader.bos_token_id, theirs.config.bos_token_id) == (tokenizer.special["eos"],) * 2
    assert theirs.generation_config.eos_token_id == tokenizer.special["eos"]
    assert theirs.generation_config.max_length == 216
    again = import_hf(tmp_path / "hf").bundle.tokenizer
    assert again is not None and again.fingerprint == tokenizer.fingerprint
    assert encode_prompt(again, prompt, 99) == encode_prompt(tokenizer, prompt, 99)


def test_transformers_adds_berts_special_tokens(tmp_path: Path) -> None:
    bundle = Bundle(shaken(CONFIGS["bert"]).model, train(built_in_lines(), "wordpiece", VOCABULARY))
    write_hf(bundle, tmp_path / "hf")
    words = bundle.tokenizer
    assert words is not None
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    cls, sep, first, second = words.special["cls"], words.special["sep"], words.encode("নদী"), words.encode("মেলা")
    assert theirs("নদী", "মেলা")["input_ids"] == [cls, *first, sep, *second, sep]
    assert theirs("নদী", "মেলা")["token_type_ids"] == [0] * (len(first) + 2) + [1] * (len(second) + 1)


def test_the_chat_template_gives_the_ids_of_training(tmp_path: Path) -> None:
    bundle = taught("qwen3")
    tokenizer = bundle.tokenizer
    assert tokenizer is not None
    write_hf(bundle, tmp_path / "hf")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    turns = [("user", "তুমি কেমন আছো?"), ("assistant", "ভালো আছি।"), ("user", AWKWARD_LINES[4])]
    messages = [{"role": role, "content": text} for role, text in turns]
    expected = [tokenizer.special["eos"]]
    for role, text in turns:
        expected += [tokenizer.special[role], *tokenizer.encode(text), tokenizer.special["end"]]
    expected.append(tokenizer.special["assistant"])
    found = theirs.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    assert found == expected
    template = ChatTemplate.of(tokenizer)
    assert template is not None and template.prompt(tokenizer, [Turn(*turn) for turn in turns]) == expected
    ends = transformers.GenerationConfig.from_pretrained(tmp_path / "hf").eos_token_id
    assert set(ends) == {tokenizer.special["eos"], tokenizer.special["end"]}, "generate() ends at the end of a turn"


def test_kothas_chat_template_is_imported_and_others_are_not_run(tmp_path: Path) -> None:
    bundle = taught("qwen3")
    write_hf(bundle, tmp_path / "hf")
    assert import_hf(tmp_path / "hf").bundle.chat == bundle.chat is not None
    settings = json.loads((tmp_path / "hf" / "tokenizer_config.json").read_text())
    settings["chat_template"] = "{{ messages[0]['content'] }}"
    (tmp_path / "hf" / "tokenizer_config.json").write_text(json.dumps(settings))
    foreign = import_hf(tmp_path / "hf")
    assert foreign.bundle.chat is None
    assert any("chat template is a program that Kotha does not run" in str(remark) for remark in foreign.remarks)
    write_hf(replace(bundle, chat=None), tmp_path / "plain")
    assert import_hf(tmp_path / "plain").bundle.chat is None


def test_the_image_processor_scales_as_our_training(tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="transformers reads images with Pillow")
    config = CONFIGS["vit"].replace(n_channels=3)
    write_hf(shaken(config), tmp_path / "hf")
    processor = transformers.AutoImageProcessor.from_pretrained(tmp_path / "hf")
    image = torch.randint(256, (3, 8, 8), dtype=torch.uint8)
    pixels = processor(image.numpy(), return_tensors="pt", input_data_format="channels_first")["pixel_values"]
    assert (pixels[0] - (image.float() / 127.5 - 1)).abs().max() < 1e-6


# -- folders that transformers wrote ----------------------------------------------------------------------------------

FOREIGN: dict[str, tuple[str, Any]] = {
    "gpt2": ("GPT2LMHeadModel", transformers.GPT2Config(**GPT2)),
    "gpt2-untied": ("GPT2LMHeadModel", transformers.GPT2Config(**GPT2, tie_word_embeddings=False, n_inner=40)),
    "gpt2-body": ("GPT2Model", transformers.GPT2Config(**GPT2)),
    "qwen3": ("Qwen3ForCausalLM", transformers.Qwen3Config(**LLAMA, head_dim=12)),
    "qwen3-tied": ("Qwen3ForCausalLM", transformers.Qwen3Config(**LLAMA, head_dim=8, tie_word_embeddings=True)),
    "llama": ("LlamaForCausalLM", transformers.LlamaConfig(**LLAMA, attention_bias=True, mlp_bias=True)),
    "llama-tied": ("LlamaForCausalLM", transformers.LlamaConfig(**LLAMA, tie_word_embeddings=True)),
    "bert": ("BertForPreTraining", transformers.BertConfig(**SMALL, intermediate_size=20)),
    "bert-words": ("BertForMaskedLM", transformers.BertConfig(**SMALL, intermediate_size=20)),
    "marian": ("MarianMTModel", transformers.MarianConfig(**MARIAN, activation_function="relu")),
    "vit": ("ViTForImageClassification", transformers.ViTConfig(**VIT, num_labels=5)),
}


def written(name: str, folder: Path, **how: Any) -> Any:
    """A folder written by transformers, with random weights."""
    kind, config = FOREIGN[name]
    torch.manual_seed(0)
    model = getattr(transformers, kind)(config)
    with torch.no_grad():
        for parameter in (each for each in model.parameters() if each.requires_grad):
            parameter.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(folder, **how)
    return model


@pytest.mark.parametrize("name", FOREIGN)
def test_folders_written_by_transformers_can_be_imported(name: str, tmp_path: Path) -> None:
    model = written(name, tmp_path / "hf")
    found = import_hf(tmp_path / "hf")
    report = check_hf(tmp_path / "hf", found.bundle, found.layout, FEW)
    assert report.passed, report.failures
    assert report.positions > 1
    assert any("do not change the result" in str(remark) for remark in found.remarks) == (name == "bert-words")
    model.save_pretrained(tmp_path / "shards", max_shard_size="6KB")
    assert (tmp_path / "shards" / "model.safetensors.index.json").exists()
    assert same_weights(import_hf(tmp_path / "shards").bundle, found.bundle)


def test_image_class_names_round_trip(tmp_path: Path) -> None:
    kind = FOREIGN["vit"][0]
    names = {0: "cat", 1: "dog", 2: "ox", 3: "owl", 4: "bat"}
    for number, (labels, kept) in enumerate(((names, tuple(names.values())), ({**names, 4: "cat"}, ()))):
        config = transformers.ViTConfig(**VIT, id2label=labels)
        getattr(transformers, kind)(config).save_pretrained(tmp_path / str(number))
        assert import_hf(tmp_path / str(number)).bundle.config.labels == kept  # type: ignore[attr-defined]
    ours = import_hf(tmp_path / "0").bundle
    assert export(ours, "hf", tmp_path / "out").passed
    assert transformers.AutoConfig.from_pretrained(tmp_path / "out").id2label == names
    assert import_hf(tmp_path / "out").bundle.config == ours.config


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_tokenizers_of_transformers_are_imported(name: str, tmp_path: Path) -> None:
    folder, lines = tmp_path / "hf", built_in_lines(60)
    folder.mkdir()
    if name == "bert":
        pieces: Any = tokenizers.BertWordPieceTokenizer(lowercase=False, strip_accents=False)
        pieces.train_from_iterator(lines, vocab_size=400)
        (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    else:
        pieces = tokenizers.ByteLevelBPETokenizer()
        pieces.train_from_iterator(lines, vocab_size=400, special_tokens=["<|endoftext|>"])
    pieces.save_model(str(folder))  # vocab.txt, or vocab.json and merges.txt
    kind, config = FOREIGN[name]
    config = type(config)(**{**config.to_dict(), "vocab_size": pieces.get_vocab_size()})
    getattr(transformers, kind)(config).save_pretrained(folder)
    found = import_hf(folder)
    report = check_hf(folder, found.bundle, found.layout, lines)
    assert report.passed, (report.failures, report.first_line_different)
    assert report.lines == 60


@pytest.mark.parametrize(("mark", "before"), [("<s>", ["<s>"]), (None, [])])
def test_prompts_have_the_same_ids_as_in_transformers(mark: str | None, before: list[str], tmp_path: Path) -> None:
    folder, special = tmp_path / "hf", ["<s>", "</s>"]
    backend: Any = tokenizers.ByteLevelBPETokenizer()
    backend.train_from_iterator(built_in_lines(60), vocab_size=400, special_tokens=special)
    if mark is not None:
        backend.post_processor = tokenizers.processors.TemplateProcessing(
            single=f"{mark} $A", pair=f"{mark} $A $B", special_tokens=[(mark, special.index(mark))]
        )
    names = {"bos_token": "<s>", "eos_token": "</s>"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=backend._tokenizer, **names).save_pretrained(folder)
    sizes = transformers.LlamaConfig(**{**LLAMA, "vocab_size": backend.get_vocab_size()})
    transformers.LlamaForCausalLM(sizes).save_pretrained(folder)
    found = import_hf(folder)
    assert found.bundle.tokenizer is not None
    read, _ = encode_prompt(found.bundle.tokenizer, "নদী", 99)
    assert read == transformers.AutoTokenizer.from_pretrained(folder)("নদী")["input_ids"]
    assert read[: -len(found.bundle.tokenizer.encode("নদী"))] == [special.index(each) for each in before]
    report = check_hf(folder, found.bundle, found.layout, FEW)
    assert report.passed and report.lines, report.failures
    # In training, Kotha surrounds documents with end tokens, whatever the vocabulary's own settings.
    text = tmp_path / "text.txt"
    text.write_text("নদীর ধারে মেলা।", encoding="utf-8")
    prepare([text], found.bundle.tokenizer, tmp_path / "data", PrepareOptions(validation=0.0))
    own = Tokenizer.load(tmp_path / "data")
    assert own.fingerprint == found.bundle.tokenizer.fingerprint and start_of_document(own) == 1


def test_a_sentencepiece_model_alone_is_compared_with_sentencepiece(tmp_path: Path) -> None:
    sentencepiece = pytest.importorskip("sentencepiece", reason="it trains the model that is read here")
    text = tmp_path / "text.txt"
    text.write_text("\n".join(line for line in built_in_lines() if line.strip()), encoding="utf-8")
    folder = tmp_path / "hf"
    folder.mkdir()
    settings = {"model_type": "bpe", "byte_fallback": True, "vocab_size": 450, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(input=str(text), model_prefix=str(folder / "tokenizer"), **settings)
    transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**LLAMA, "vocab_size": 450})).save_pretrained(folder)
    found = import_hf(folder)
    report = check_hf(folder, found.bundle, found.layout)
    assert report.passed, (report.failures, report.first_line_different)
    assert "sentencepiece" in str(report.remarks[0])


def test_special_tokens_spelled_in_text_do_not_fail_the_check_of_a_sentencepiece_model(tmp_path: Path) -> None:
    sentencepiece = pytest.importorskip("sentencepiece", reason="it trains the model that is read here")
    text = tmp_path / "text.txt"
    text.write_text("\n".join(line for line in built_in_lines() if line.strip()), encoding="utf-8")
    settings = {"vocab_size": 400, "hard_vocab_limit": False, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(input=str(text), model_prefix=str(tmp_path / "spiece"), **settings)
    tokenizer = import_tokenizer(tmp_path / "spiece.model", extra_ids=100)
    config = CONFIGS["gpt2"].replace(vocab_size=tokenizer.vocab_size)
    spelled = ["আমি </s> তুমি", "<extra_id_0> নদী"]
    lines = [*FEW, *spelled]
    report = export(Bundle(build(config), tokenizer), "hf", tmp_path / "out", lines=lines)
    assert report.passed, (report.failures, report.first_line_different)
    assert report.lines == len(lines) - 3  # the two, and the awkward line with </s>
    assert any("3 lines were not compared" in str(remark) for remark in report.remarks)


def rewrite(folder: Path, change: Callable[[dict[str, torch.Tensor]], Any]) -> None:
    """Change the weights of a folder."""
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def test_computed_weights_of_old_folders_are_ignored(tmp_path: Path) -> None:
    def old(weights: dict[str, torch.Tensor]) -> None:
        weights["transformer.h.0.attn.bias"] = torch.ones(1, 1, 4, 4, dtype=torch.uint8)
        weights["lm_head.weight"] = weights["transformer.wte.weight"].clone()

    written("gpt2", tmp_path / "hf")
    rewrite(tmp_path / "hf", old)
    assert import_hf(tmp_path / "hf").layout.name == "gpt2"
    rewrite(tmp_path / "hf", lambda weights: weights["lm_head.weight"][0].add_(1))
    with pytest.raises(KothaError, match=r"transformer.wte.weight differs from lm_head.weight, but the config ties"):
        import_hf(tmp_path / "hf")


def test_weights_of_two_types_become_the_wider(tmp_path: Path) -> None:
    written("llama", tmp_path / "hf")
    rewrite(
        tmp_path / "hf",
        lambda weights: weights.update({name: each.bfloat16() for name, each in weights.items() if "norm" not in name}),
    )
    found = import_hf(tmp_path / "hf")
    assert {each.dtype for each in found.bundle.model.parameters()} == {torch.float32}


def test_without_transformers_the_report_says_not_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    report = export(shaken(CONFIGS["gpt2"]), "hf", tmp_path / "hf")
    assert not report.checked
    (remark,) = map(str, report.remarks)
    assert remark.startswith("not checked: transformers is not installed; install it with: ")
    assert remark.endswith("pip install transformers")


def test_errors_of_transformers_become_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("no room\nat all")

    bundle = shaken(CONFIGS["gpt2"])
    layout = write_hf(bundle, tmp_path / "hf")
    monkeypatch.setattr(transformers.GPT2LMHeadModel, "forward", broken)
    with pytest.raises(KothaError, match=f"transformers cannot run {tmp_path}/hf: no room at all$"):
        check_hf(tmp_path / "hf", bundle, layout)
    (tmp_path / "hf" / "config.json").write_text("{}")
    with pytest.raises(KothaError, match=f"transformers cannot open {tmp_path}/hf: "):
        check_hf(tmp_path / "hf", bundle, layout)


@pytest.mark.parametrize("name", ["qwen3", "marian"])
def test_output_settings_of_a_folder_are_ignored(tmp_path: Path, name: str) -> None:
    bundle = shaken(CONFIGS[name])
    layout = write_hf(bundle, tmp_path / "hf")
    settings = json.loads((tmp_path / "hf" / "config.json").read_text())
    (tmp_path / "hf" / "config.json").write_text(json.dumps({**settings, "return_dict": False}))
    report = check_hf(tmp_path / "hf", bundle, layout, FEW)
    assert report.checked and report.passed, report.failures


@pytest.mark.parametrize("text", ['"kotha"', '["kotha"]', "3", "{"])
def test_a_folder_of_something_else_is_not_replaced(tmp_path: Path, text: str) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text(text)
    with pytest.raises(KothaError, match="mine exists; choose another f"):
        write_hf(shaken(CONFIGS["vit"]), tmp_path / "mine", overwrite=True)
    assert (tmp_path / "mine" / "config.json").read_text() == text


def test_a_marian_without_a_tokenizer_opens(tmp_path: Path) -> None:
    bundle = Bundle(shaken(CONFIGS["marian"]).model, None)
    layout = write_hf(bundle, tmp_path / "hf")
    report = check_hf(tmp_path / "hf", bundle, layout)
    assert report.checked and report.passed, report.failures
    assert same_weights(import_hf(tmp_path / "hf").bundle, bundle)
