"""GGUF files run in llama.cpp: token ids and best tokens for every weight type; rejected models."""

import json
import sys
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.conftest import SHARED_DATA

from kotha.artifacts.model_folder import Bundle
from kotha.errors import ConfigError, KothaError, TokenizerError
from kotha.export.gguf import export as gguf_export
from kotha.export.gguf import vocabulary
from kotha.export.gguf.export import KINDS, write_file
from kotha.export.gguf.vocabulary import vocabulary_of
from kotha.export.parity import AWKWARD_LINES, ParityReport, logit_rows
from kotha.export.targets import export
from kotha.model.config import BERTConfig, GPTConfig
from kotha.model.gpt import GPT
from kotha.model.presets import MODERN, preset
from kotha.text.stories.corpus import stories
from kotha.text.tokenizer import spiece
from kotha.text.tokenizer.chat import ChatTemplate
from kotha.text.tokenizer.importers import import_tokenizer
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.trainers import train

gguf = pytest.importorskip("gguf", reason="writing GGUF needs the gguf library")

SHARED = SHARED_DATA / "tokenizers"
MIXED = ("😀 {} 🇧🇩", "Python {} don't", "{} ১২৩ 2026", "  {}  ", "র‍্যাব {} ত্‍", "{}\n\n{}", "<|user|>{}<0x41>", "{}中文é")


@cache
def story_lines() -> tuple[str, ...]:
    texts = [line for story in islice(stories(seed=1), 60) for line in story.text.splitlines() if line]
    return (*texts[:150], *(form.replace("{}", text) for text, form in zip(texts[150:], MIXED * 10, strict=False)))


@cache
def tokenizer(kind: str, split: str | None = None) -> Tokenizer:
    texts = [story.text for story in islice(stories(seed=0), 150)]
    return train([*texts, "র‍্যাব র‍্যালি"], kind, vocab_size=1100, split=split)


def model(name: str, seed: int = 0, **changes: object) -> GPT:
    """A small model with weights large enough that rounding does not change its best token."""
    size = {"vocab_size": 1100, "context_length": 64, "n_layers": 2, "d_model": 64, "n_heads": 4, "d_ff": 96}
    layouts: dict[str, dict[str, object]] = {
        "classic": {"attention_bias": False, "tied_head": False},
        "gpt2": {"activation": "gelu-tanh"},
        "modern": {**MODERN, "n_kv_heads": 2, "d_head": 32},
        "llama": {**MODERN, "n_kv_heads": 2, "qk_norm": False},
    }
    torch.manual_seed(seed)
    made = GPT(GPTConfig(**{**size, **layouts[name], **changes}))  # type: ignore[arg-type]
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.15)
    return made.eval()


def exported(folder: Path, name: str, kind: str = "bpe", **wishes: Any) -> ParityReport:
    return export(Bundle(model(name), tokenizer(kind)), "gguf", folder / "m.gguf", **wishes)


@pytest.fixture
def llamacpp() -> None:
    pytest.importorskip("xllamacpp", reason="real llama.cpp comes with the xllamacpp wheel")


@pytest.mark.parametrize(
    ("name", "kind"),
    [("classic", "bpe"), ("gpt2", "unigram"), ("modern", "unigram"), ("modern", "bpe"), ("llama", "bpe")],
)
def test_llamacpp_gives_the_same_token_ids_and_best_tokens(
    tmp_path: Path, name: str, kind: str, llamacpp: None
) -> None:
    report = exported(tmp_path, name, kind, lines=[*AWKWARD_LINES, *story_lines()])
    assert report.checked and report.passed, report.failures
    assert report.lines > 200 and report.lines_different == 0
    assert report.positions == 512 and report.best_equal is not None and report.best_equal >= 0.99
    assert report.max_logit_difference is not None and report.max_logit_difference < 0.15
    remarks = " ".join(map(str, report.remarks))
    assert ("does not normalize" in remarks, "GELU" in remarks) == (kind == "bpe", name == "classic")
    assert [each.name for each in tmp_path.iterdir()] == ["m.gguf"]


def test_a_unigram_without_normalization_gives_the_same_token_ids(tmp_path: Path, llamacpp: None) -> None:
    text = train([story.text for story in islice(stories(seed=0), 40)], "unigram", vocab_size=700, rules=())
    lines = [*AWKWARD_LINES, *story_lines()]
    made = Bundle(model("modern", vocab_size=700), text)
    report = export(made, "gguf", tmp_path / "m.gguf", lines=lines)
    assert report.lines_different == 0, report.first_line_different


def test_every_weight_type_opens_with_close_logits(tmp_path: Path, llamacpp: None) -> None:
    # The largest change of a logit by rounding; logits vary by about five.
    allowed = {"f32": 0.02, "f16": 0.05, "q8_0": 0.8, "q4_0": 8.0}
    small, text = model("modern"), tokenizer("bpe")
    windows = logit_rows(small.config, text, story_lines(), 1)
    with torch.inference_mode():
        ours = small(windows)[0]
    sizes, differences = [], []
    for kind in KINDS:
        path = tmp_path / f"{kind}.gguf"
        write_file(small, text, path, kind)
        theirs = gguf_export.ask_llamacpp(path, windows=windows.tolist()).logits
        differences.append(float((ours - theirs).abs().max()))
        assert differences[-1] < allowed[kind], kind
        sizes.append(path.stat().st_size)
    assert sizes == sorted(sizes, reverse=True)
    assert differences == sorted(differences)


def test_text_round_trips(tmp_path: Path, llamacpp: None) -> None:
    path, small, text = tmp_path / "m.gguf", model("classic"), tokenizer("unigram")
    write_file(small, text, path, "f32")
    ids = [text.encode(line) for line in story_lines()]
    answer = gguf_export.ask_llamacpp(path, decode=ids)
    # Characters outside the vocabulary are encoded by bytes, which llama.cpp omits from its output.
    spelled = [[token for token in each if not text.pieces[token].startswith("<0x")] for each in ids]
    assert answer.text == [text.decode(each) for each in spelled]
    assert sum(map(len, spelled)) > 0.9 * sum(map(len, ids))


def test_parity_detects_unpermuted_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, llamacpp: None) -> None:
    monkeypatch.setattr(gguf_export, "_interleave", lambda weight, d_head: weight)
    report = exported(tmp_path, "llama", lines=story_lines())
    assert not report.passed and "the most likely token matches" in str(report.failures[0])


def test_parity_detects_a_wrong_pre_tokenizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, llamacpp: None) -> None:
    monkeypatch.setitem(vocabulary._PRE_TOKENIZERS, "qwen35", "gpt-2")
    report = exported(tmp_path, "gpt2", lines=story_lines())
    assert not report.passed and "lines are tokenized differently" in str(report.failures[-1])


def test_a_damaged_file_raises_an_error_without_a_crash(tmp_path: Path, llamacpp: None) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF" + bytes(64))
    with pytest.raises(KothaError, match=r"llama\.cpp failed on"):
        gguf_export.ask_llamacpp(path, lines=["ক"])


def test_a_file_that_llamacpp_cannot_open_raises_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, llamacpp: None
) -> None:
    known = gguf_export.layout_of
    monkeypatch.setattr(gguf_export, "layout_of", lambda config: replace(known(config), name="no-such-architecture"))
    with pytest.raises(KothaError, match=r"llama\.cpp failed on .*no-such-architecture"):
        exported(tmp_path, "gpt2")


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("taken", "taken/model-f16.gguf cannot be written: .*taken is a file, not a folder"),
        ("taken/below", "cannot be written: .*taken is a file, not a folder"),
        ("folder.gguf", "folder.gguf is a folder; specify a file in it"),
        ("a" * 300, "cannot be written: File name too long"),
        ("b" * 248 + ".gguf", "could not be written: File name too long"),
    ],
)
def test_a_path_that_cannot_be_written_raises_an_error(tmp_path: Path, place: str, message: str) -> None:
    (tmp_path / "taken").touch()
    (tmp_path / "folder.gguf").mkdir()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(KothaError, match=message):
        export(Bundle(model("gpt2"), tokenizer("bpe")), "gguf", tmp_path / place, overwrite=place == "folder.gguf")
    assert sorted(tmp_path.iterdir()) == before


def test_the_metadata_describe_the_model(tmp_path: Path) -> None:
    text = tokenizer("unigram")
    small = model("modern", vocab_size=text.vocab_size + 3)
    write_file(small, text, tmp_path / "m.gguf", "f16")
    fields = gguf.GGUFReader(tmp_path / "m.gguf").fields
    result = {name: fields[name].contents() for name in fields if not name.startswith("tokenizer.ggml.scores")}
    assert result["general.architecture"] == "qwen3" and result["tokenizer.ggml.model"] == "t5"
    assert result["qwen3.attention.head_count_kv"] == 2 and result["qwen3.attention.key_length"] == 32
    assert result["tokenizer.ggml.eos_token_id"] == text.special["eos"]
    assert result["tokenizer.ggml.eot_token_id"] == text.special["end"]
    assert result["tokenizer.ggml.add_bos_token"] is True
    assert result["tokenizer.ggml.bos_token_id"] == text.special["eos"]
    assert result["tokenizer.ggml.tokens"][-1] == f"<|unused-{text.vocab_size + 2}|>"
    template = ChatTemplate.of(text)
    assert template is not None and result["tokenizer.chat_template"] == template.jinja()


def test_kinds_of_pieces() -> None:
    text = tokenizer("unigram")
    made = vocabulary_of(text, text.vocab_size).fields
    kinds = made["token_types"]
    assert (kinds[text.special["unk"]], kinds[text.special["eos"]]) == (spiece.UNKNOWN, spiece.CONTROL)
    assert kinds.count(spiece.UNUSED) == 256  # byte characters, which only the character map produces
    assert made["token_scores"] == [score for _, score in json.loads(text.backend.to_str())["model"]["vocab"]]
    bpe = tokenizer("bpe")
    found = enumerate(vocabulary_of(bpe, bpe.vocab_size).fields["token_types"])
    assert [bpe.pieces[i] for i, kind in found if kind == spiece.USER_DEFINED] == ["র‍্যা", " র‍্যা"]


def test_rows_not_divisible_by_32_stay_in_float16(tmp_path: Path, llamacpp: None) -> None:
    small = model("gpt2", d_model=48, d_ff=96)
    bundle = Bundle(small, tokenizer("bpe"))
    report = export(bundle, "gguf", tmp_path / "m.gguf", weights="q8_0", lines=story_lines())
    assert report.passed, report.failures
    assert "multiple of 32: token_embd.weight, blk.0.attn_qkv.weight" in str(report.remarks[-1])
    assert "ffn_down" not in str(report.remarks[-1])  # its rows have 96 numbers


def test_without_llamacpp_the_report_says_not_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    report = export(Bundle(model("gpt2"), tokenizer("bpe")), "gguf", tmp_path)
    assert not report.checked and str(report.remarks[0]).startswith("not checked: xllamacpp is not installed; install")
    assert (tmp_path / "model-f16.gguf").is_file()


def test_without_the_library_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(KothaError, match=r"pip install .gguf"):
        exported(tmp_path, "gpt2")


@pytest.mark.parametrize("kind", ["f32", "f16", "q8_0"])
def test_a_disk_full_at_the_last_bytes_raises_an_error(tmp_path: Path, kind: str) -> None:
    """numpy's own ``tofile`` would lose small weights without an error."""
    resource = pytest.importorskip("resource", reason="this system bounds no files")
    path, again = tmp_path / "whole.gguf", tmp_path / "again.gguf"
    small, words = model("llama"), tokenizer("bpe")
    write_file(small, words, path, kind)
    room = path.stat().st_size
    for missing in (1, 64, 1000):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room - missing, before[1]))
        try:
            with pytest.raises(KothaError, match="File too large"):
                write_file(small, words, again, kind)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert [each.name for each in tmp_path.iterdir()] == ["whole.gguf"]
    write_file(small, words, again, kind)
    assert again.stat().st_size == room


@pytest.mark.parametrize(
    ("kind", "split", "words"),
    [
        ("wordpiece", None, "does not support wordpiece tokenizers; train the model with a bpe"),
        ("char", None, "does not support char tokenizers"),
        ("bpe", "words", "does not support the pre-tokenizer 'words'; train the tokenizer with split='qwen35'"),
    ],
)
def test_unsupported_tokenizers_are_rejected(kind: str, split: str | None, words: str) -> None:
    with pytest.raises(TokenizerError, match=words):
        vocabulary_of(tokenizer(kind, split), 2000)


def test_a_weight_too_large_for_float16_is_refused(tmp_path: Path) -> None:
    large = model("gpt2")
    with torch.no_grad():
        large.tokens.weight[0, 0] = 1e6
    with pytest.raises(KothaError, match=r"token_embd\.weight contains 1,000,000, too large for float16"):
        export(Bundle(large, tokenizer("bpe")), "gguf", tmp_path / "m.gguf")
    assert not any(tmp_path.iterdir())


def test_unsupported_settings_are_named() -> None:
    modern = preset("pocket")
    assert isinstance(modern, GPTConfig)
    assert gguf_export.layout_of(modern).name == "qwen3"
    assert gguf_export.layout_of(modern.replace(qk_norm=False)).name == "llama"
    assert gguf_export.layout_of(preset("gpt2")).name == "gpt2"
    bert = BERTConfig(vocab_size=9, context_length=8, n_layers=1, d_model=8, n_heads=2)
    for config, said in (
        (modern.replace(attention_bias=True), r"attention_bias=true: llama\.cpp's qwen3 requires false"),
        (preset("mini"), "norm_order=post: .*positions=none: "),
        (bert, "no architecture for this model: family='bert'"),
    ):
        with pytest.raises(ConfigError, match=said):
            gguf_export.layout_of(config)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bnlp_spm50k", "csebuetnlp_banglanmt_spm32k"])
def test_sentencepiece_unigrams_from_elsewhere(tmp_path: Path, name: str, llamacpp: None) -> None:
    if not (SHARED / name).exists():
        pytest.skip("the shared tokenizers are not on this machine")
    foreign = import_tokenizer(SHARED / name)
    small = model("gpt2", vocab_size=foreign.vocab_size, d_model=32, d_ff=32, n_layers=1)
    report = export(Bundle(small, foreign), "gguf", tmp_path / "m.gguf", weights="f32", lines=story_lines())
    assert report.lines_different == 0, report.first_line_different
    assert replace(report, lines=0).peer is not None
