"""Translation from Python and the command line, special tokens, and rejected input."""

import io
import json
from pathlib import Path

import pytest
import torch
from tests.text.conftest import trained

import kotha
from kotha.artifacts.model_folder import Bundle, save
from kotha.cli.main import main
from kotha.errors import DataError, UsageError
from kotha.generation.beam import BeamSettings, beam_search
from kotha.i18n.message import Message
from kotha.model.config import GPTConfig, Seq2SeqConfig
from kotha.model.family import build
from kotha.text.tokenizer.tokenizer import Tokenizer

SHORT, LONG = "সে বই পড়ে।", "আমি ভাত খাই। " * 9


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return trained("unigram")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer) -> Path:
    torch.manual_seed(0)
    sizes = {"context_length": 8, "n_layers": 1, "n_decoder_layers": 1, "d_model": 32, "n_heads": 2}
    model = build(Seq2SeqConfig(vocab_size=tokenizer.vocab_size, **sizes))
    return save(tmp_path_factory.mktemp("translate") / "seq2seq", model.eval(), tokenizer)


def test_translation_uses_the_special_tokens_of_training(folder: Path, tokenizer: Tokenizer) -> None:
    lm, result = kotha.load(folder), list[tuple[Message, int, int]]()
    found = lm.translate([SHORT, LONG, " "], beams=2, on_progress=lambda *each: result.append(each))
    settings = BeamSettings(start=tokenizer.special["bos"], end=tokenizer.special["eos"], beams=2)
    for text, source in zip(found, (SHORT, LONG), strict=False):  # a long source is truncated
        ids = [*tokenizer.encode(source)[:7], settings.end]
        best = beam_search(lm.model, ids, settings)[0]  # type: ignore[arg-type]
        assert text == tokenizer.decode(best.ids) == lm.translate(source, beams=2)
    assert found[2] == "", "an empty source gives an empty text"
    assert result[-1] == (Message("translating"), 3, 3)


def test_the_command_takes_a_text_or_lines(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = kotha.load(folder).translate([SHORT, "", LONG])
    assert main(["translate", str(folder), SHORT]) == 0
    assert capsys.readouterr().out == expected[0] + "\n"
    lines = "\n".join([SHORT, "", LONG]) + "\n"
    (tmp_path / "lines.txt").write_text(lines, encoding="utf-8")
    assert main(["translate", str(folder), "--file", str(tmp_path / "lines.txt")]) == 0
    assert capsys.readouterr().out.splitlines() == expected, "one line per line, also for an empty one"
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    assert main(["translate", str(folder), "--file", "-", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["text"] for row in rows] == expected
    assert rows[0]["source"] == SHORT
    for content, count in (("", 0), (f"{SHORT}\u2028{SHORT}\x0c\n", 1)):
        (tmp_path / "lines.txt").write_text(content, encoding="utf-8")
        assert main(["translate", str(folder), "--file", str(tmp_path / "lines.txt"), "--json"]) == 0
        assert len(json.loads(capsys.readouterr().out)) == count, (
            "one result per line, whatever other line separators it contains"
        )


def test_invalid_translation_requests_are_rejected(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lm = kotha.load(folder)
    gpt = build(GPTConfig(vocab_size=lm.config.vocab_size, context_length=8, n_layers=1, d_model=16, n_heads=2))
    with pytest.raises(UsageError, match="only Seq2Seq models can translate"):
        kotha.LanguageModel(Bundle(gpt, lm.tokenizer)).translate(SHORT)
    with pytest.raises(UsageError, match="is a seq2seq model and does not generate text; use translate"):
        lm.generate("মা")
    unmarked = Tokenizer(lm.tokenizer.backend)
    del unmarked.special["bos"]
    with pytest.raises(DataError, match="no bos and eos tokens"):
        kotha.LanguageModel(Bundle(lm.model, unmarked)).translate(SHORT)
    (tmp_path / "latin.txt").write_bytes(b"\xff\xfe\xe9")
    for words, said in (
        ([], "give either TEXT or --file"),
        ([SHORT, "--file", "x"], "give either TEXT or --file"),
        (["--file", str(tmp_path / "latin.txt")], "is not UTF-8 text"),
        (["--file", str(tmp_path / "none.txt")], "none.txt not found; check the path"),
        ([SHORT, "--beams", "0"], "is too small; use 1 or more"),
    ):
        assert main(["translate", str(folder), *words]) != 0
        assert said in capsys.readouterr().err
