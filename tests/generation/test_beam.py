"""Beam search compared with an exhaustive search and with Marian's generate."""

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.export.models import CONFIGS, shaken
from tests.generation.conftest import SIZES
from transformers import MarianMTModel

from kotha.errors import UsageError
from kotha.export.huggingface.export import write_hf
from kotha.generation.beam import BeamSettings, Hypothesis, beam_search, beam_searches
from kotha.model.config import Seq2SeqConfig
from kotha.model.pruning import remove_heads
from kotha.model.seq2seq import Seq2Seq

END, START = 0, 1


def tiny(vocab_size: int = 4, context_length: int = 4, seed: int = 0, **more: Any) -> Seq2Seq:
    torch.manual_seed(seed)
    model = Seq2Seq(Seq2SeqConfig(**SIZES, vocab_size=vocab_size, context_length=context_length, **more)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


@torch.no_grad()
def all_sentences(model: Seq2Seq, source: list[int], longest: int) -> list[Hypothesis]:
    """All complete target sequences with their scores, best first."""
    found = []
    for length in range(1, longest + 1):
        for words in itertools.product(range(4), repeat=length):
            ends = words[-1] == END
            if END in words[:-1] or not (ends or length == longest):
                continue
            logits = model(torch.tensor([source]), torch.tensor([[START, *words[:-1]]]))[0]
            total = logits.log_softmax(dim=-1)[torch.arange(length), list(words)].sum().item()
            found.append(Hypothesis(words[:-1] if ends else words, total / length))
    return sorted(found, key=lambda each: -each.score)


@pytest.mark.parametrize("seed", range(4))
def test_with_enough_beams_it_is_an_exhaustive_search(seed: int) -> None:
    model, source = tiny(seed=seed), [2, 3, 1]
    beams = 4**4
    found = beam_search(model, source, BeamSettings(start=START, end=END, beams=beams))
    expected = all_sentences(model, source, 4)
    assert len(found) == len(expected)
    for mine, other in zip(found, expected, strict=True):
        assert mine.score == pytest.approx(other.score, abs=1e-4)
    assert {each.ids for each in found[:3]} == {each.ids for each in expected[:3]}


def test_one_beam_takes_the_best_token_each_time() -> None:
    model, target = tiny(vocab_size=20, context_length=9, seed=1), [START]
    (found,) = beam_search(model, [2, 3], BeamSettings(start=START, end=END, beams=1))
    with torch.no_grad():
        while len(target) <= 9:
            target.append(int(model(torch.tensor([[2, 3]]), torch.tensor([target]))[0, -1].argmax()))
            if target[-1] == END:
                target.pop()
                break
    assert list(found.ids) == target[1:]


@pytest.mark.parametrize("seed", range(6))
def test_it_finds_what_marian_finds(seed: int, tmp_path: Path) -> None:
    bundle = shaken(CONFIGS["marian-biased"], seed)
    assert isinstance(bundle.model, Seq2Seq) and bundle.tokenizer is not None
    write_hf(bundle, tmp_path / "hf")
    theirs = MarianMTModel.from_pretrained(tmp_path / "hf").eval()
    start, end = (bundle.tokenizer.special[role] for role in ("bos", "eos"))
    source = torch.randint(20, 500, (1, 6))
    for beams in (1, 3, 4, 5):
        other = theirs.generate(source, num_beams=beams, max_new_tokens=12, early_stopping="never", do_sample=False)
        settings = BeamSettings(start=start, end=end, beams=beams, tokens=12)
        best = beam_search(bundle.model, source[0].tolist(), settings)[0]
        assert list(best.ids) == [token for token in other[0, 1:].tolist() if token != end]


def test_with_pruned_heads_it_finds_what_silent_ones_find() -> None:
    whole = tiny(vocab_size=9, context_length=8)
    heads = ["encoder.0.attention.1", "decoder.0.attention.2", "decoder.0.attention.3", "decoder.1.cross.0"]
    smaller, settings = remove_heads(whole, heads), BeamSettings(start=START, end=END, beams=3)
    with torch.no_grad():
        whole.encoder.blocks[0].attention.output.weight[:, 4:8] = 0
        whole.decoder.blocks[0].attention.output.weight[:, 8:16] = 0
        whole.decoder.blocks[1].cross.output.weight[:, 0:4] = 0
    found, expected = (beam_search(model, [2, 3, 4], settings) for model in (smaller, whole))
    assert [each.ids for each in found] == [each.ids for each in expected]
    assert [each.score for each in found] == pytest.approx([each.score for each in expected], abs=1e-5)


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_side_by_side_they_find_what_each_finds_alone(beams: int, positions: str) -> None:
    model = tiny(vocab_size=6, context_length=12, seed=7, positions=positions)
    generator = torch.Generator().manual_seed(0)
    sources = [torch.randint(2, 6, (length,), generator=generator).tolist() for length in (1, 12, 5, 5, 2, 9, 3, 12)]
    settings = BeamSettings(start=START, end=END, beams=beams)
    alone = [beam_search(model, source, settings) for source in sources]
    assert len({len(each[0].ids) for each in alone}) > 1, "some leave before the others"
    for found, expected in zip(beam_searches(model, sources, settings), alone, strict=True):
        assert [each.ids for each in found] == [each.ids for each in expected]
        assert [each.score for each in found] == pytest.approx([each.score for each in expected], rel=1e-5)
    assert beam_searches(model, [], settings) == []


@pytest.mark.parametrize(
    ("given", "wording"),
    [
        ({"beams": 0}, "beams=0 is too small"),
        ({"tokens": 0}, "tokens=0 is too small"),
    ],
)
def test_settings_out_of_range_are_rejected(given: dict[str, Any], wording: str) -> None:
    with pytest.raises(UsageError, match=wording):
        BeamSettings(start=START, end=END, **given)


def test_an_empty_source_is_refused_and_the_model_left_as_it_was() -> None:
    model = tiny().train()
    with pytest.raises(UsageError, match="the source is empty"):
        beam_search(model, [], BeamSettings(start=START, end=END))
    beam_search(model, [2], BeamSettings(start=START, end=END))
    assert model.training
