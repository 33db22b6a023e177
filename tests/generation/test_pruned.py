"""Pruned models write the same by every way of writing, though each layer has heads of its own number."""

from typing import Any

import pytest
import torch
from tests.generation.conftest import tiny
from tests.generation.test_beam import END, START
from tests.generation.test_beam import tiny as tiny_seq2seq

from kotha.generation.answers import Request
from kotha.generation.beam import BeamSettings, beam_search
from kotha.generation.engine import Engine
from kotha.generation.plain import continue_plainly
from kotha.generation.settings import SamplingSettings
from kotha.model.gpt import GPT
from kotha.model.pruning import remove_heads

REMOVED = {
    "classic": ["blocks.0.attention.1", "blocks.1.attention.0", "blocks.1.attention.3"],
    "modern": ["blocks.1.attention.2"],
    "grouped": ["blocks.0.attention.3", "blocks.1.attention.0", "blocks.1.attention.1"],  # uneven; a key head gone
    "post-norm": ["blocks.0.attention.0", "blocks.0.attention.2"],
}


def pruned(layout: str) -> GPT:
    return remove_heads(tiny(layout, context_length=24, vocab_size=31), REMOVED[layout])


@pytest.mark.parametrize("weights", [None, "float32"])
@pytest.mark.parametrize("layout", REMOVED)
def test_the_engine_writes_what_the_plain_way_writes(layout: str, weights: Any) -> None:
    model = pruned(layout)
    prompts = [(3, 4, 5), (7,), (1, 2, 3, 4, 5, 6, 7, 8)]  # rows of different lengths, past the context too
    requests = [
        Request(prompt=prompt, tokens=30, settings=SamplingSettings(temperature=1.0, top_k=None, seed=seed))
        for seed, prompt in enumerate(prompts)
    ]
    found = [result.ids for result in Engine(model, None, max_batch=2, weights=weights).generate(requests)]
    with torch.no_grad():
        plain = [continue_plainly(model, list(each.prompt), 30, each.settings) for each in requests]
    assert [list(ids) for ids in found] == [ids[-30:] for ids in plain]


def test_a_translation_is_found_as_if_the_heads_were_silent() -> None:
    whole = tiny_seq2seq(vocab_size=9, context_length=8)
    heads = ["encoder.0.attention.1", "decoder.0.attention.2", "decoder.0.attention.3", "decoder.1.cross.0"]
    smaller = remove_heads(whole, heads)
    settings = BeamSettings(start=START, end=END, beams=3)
    found = beam_search(smaller, [2, 3, 4], settings)
    with torch.no_grad():
        whole.encoder.blocks[0].attention.output.weight[:, 4:8] = 0
        whole.decoder.blocks[0].attention.output.weight[:, 8:16] = 0
        whole.decoder.blocks[1].cross.output.weight[:, 0:4] = 0
    expected = beam_search(whole, [2, 3, 4], settings)
    assert [each.ids for each in found] == [each.ids for each in expected]
    assert [each.score for each in found] == pytest.approx([each.score for each in expected], abs=1e-5)
