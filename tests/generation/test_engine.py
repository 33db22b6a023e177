"""The engine compared with the plain version: single requests, batches, beyond the context; streams, stops, errors."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.export.models import CONFIGS, shaken
from tests.generation.conftest import LAYOUTS, REMOVED, tiny
from tests.text.conftest import KINDS, trained
from transformers import AutoModelForCausalLM

import kotha.generation.batch_state as rows_module
from kotha.artifacts.model_folder import Bundle
from kotha.errors import KothaError, NotFiniteError, UsageError
from kotha.export.huggingface.export import write_hf
from kotha.generation import cache_memory, torch_decoder
from kotha.generation.cache_memory import CacheMemory
from kotha.generation.engine import Engine
from kotha.generation.plain import continue_plainly
from kotha.generation.request import Request, Result
from kotha.generation.settings import SamplingSettings
from kotha.generation.torch_decoder import at_work
from kotha.model.bert import BERT
from kotha.model.config import BERTConfig
from kotha.model.gpt import GPT
from kotha.model.pruning import remove_heads
from kotha.text.tokenizer.tokenizer import Tokenizer

PROMPTS = ["মা", "", "আমরা সন্ধ্যায় ছাদে বসে তারা দেখি।", "নদীর ঘাটে", "\u0995\u09cd ☃", "বৃষ্টির দিনে খিচুড়ি"]
MIXED = [
    SamplingSettings(temperature=0),
    SamplingSettings(seed=1),
    SamplingSettings(seed=2, top_k=None, top_p=0.9, temperature=1.2),
    SamplingSettings(seed=3, top_k=None, min_p=0.05, repetition_penalty=1.3),
    SamplingSettings(seed=4, top_k=None, temperature=1),
    SamplingSettings(seed=5, top_k=7),
]


@pytest.fixture(params=["a CPU's pace", "a GPU's pace"])
def pace(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of checking for finished rows: after each step, and after blocks of steps while the next block runs."""
    if request.param == "a GPU's pace":
        monkeypatch.setitem(torch_decoder._PACE, "cpu", (4, True))


def scripted(monkeypatch: pytest.MonkeyPatch, tokens: Iterable[int]) -> None:
    """Make an engine sample these tokens for its only request."""
    coming = iter(tokens)
    monkeypatch.setattr(rows_module, "draw", lambda *_: torch.tensor([next(coming, 0)]))


def ask(place: int, tokens: int = 24, **more: Any) -> Request:
    return Request(prompt=PROMPTS[place], tokens=tokens, settings=MIXED[place], **more)


def plainly(model: GPT, request: Request) -> list[int]:
    tokenizer = trained("unigram")
    assert isinstance(request.prompt, str)
    end = tokenizer.special["eos"]
    start = [end, *tokenizer.encode(request.prompt)]
    ends = {end, tokenizer.special["end"]}
    return continue_plainly(model, start, request.tokens, request.settings, ends)


@pytest.mark.parametrize("weights", [None, "float32"], ids=["the model", "in C"])
@pytest.mark.usefixtures("pace")
def test_memory_grows_with_the_tokens_read_and_not_with_the_context_length(
    weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_memory, "_FIRST", 4)  # so that the cache grows several times
    model = tiny("modern", context_length=10**9)
    engine = Engine(model, trained("unigram"), max_batch=3, weights=weights)
    requests = [ask(place) for place in range(6)]
    results = engine.generate(requests)
    assert engine._decoder.cache.size < 100
    usual = Engine(tiny("modern", context_length=512), trained("unigram"), max_batch=3, weights=weights)
    assert [result.ids for result in results] == [result.ids for result in usual.generate(requests)]


def test_a_cache_larger_than_the_memory_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CacheMemory, "_free_memory", lambda _: 5e5)
    engine = Engine(tiny("modern", context_length=10**9, vocab_size=30), None, max_batch=1)
    with pytest.raises(KothaError, match=r"the KV cache for 1 sequences of 3,000 tokens needs .* GiB is free"):
        engine.generate([Request(prompt=(1,) * 3000, tokens=2)])


@pytest.mark.parametrize("settings", MIXED[:5], ids=["greedy", "top-k", "top-p", "min-p", "all"])
@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_nan_and_infinite_logits_raise_an_error(settings: SamplingSettings, broken: float) -> None:
    model = tiny("classic", vocab_size=600)  # more tokens than are ranked initially
    with torch.no_grad():
        model.head.weight[3] = broken
    for weights in (None, "float32"):
        with pytest.raises(NotFiniteError, match="the model: activations overflow or are NaN"):
            Engine(model, None, weights=weights).generate([Request(prompt=(1, 2), tokens=3, settings=settings)])
    with pytest.raises(NotFiniteError, match="the model: activations overflow or are NaN"):
        continue_plainly(model, [1, 2], 3, settings)


@pytest.mark.parametrize("large", ["tokens.weight", "attention", "feedforward"])
@pytest.mark.parametrize("layout", ["classic", "modern", "post-norm"])
def test_activations_that_overflow_raise_an_error(layout: str, large: str) -> None:
    """Without a check, norms return zeros, and all tokens get the same probability."""
    model = tiny(layout)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if large in name and parameter.ndim > 1:
                parameter.mul_(1e30)
    for weights in (None, "float32"):
        with pytest.raises(NotFiniteError, match="activations overflow"):
            Engine(model, None, weights=weights).generate([Request(prompt=(1, 2, 3), tokens=3)])
    with pytest.raises(NotFiniteError, match="activations overflow"):
        continue_plainly(model, [1, 2, 3], 3, SamplingSettings())


@pytest.mark.parametrize(("layout", "removed"), [*((each, []) for each in LAYOUTS), *REMOVED.items()])
@pytest.mark.usefixtures("pace")
def test_a_mixed_batch_beyond_the_context_equals_the_plain_version(layout: str, removed: list[str]) -> None:
    """A pruned model, whose layers have different numbers of heads, is tested too."""
    model = remove_heads(tiny(layout), removed) if removed else tiny(layout)
    requests = [ask(place) for place in range(6)]  # prompts and 24 tokens are three times the context
    expected = [plainly(model, request) for request in requests]
    for weights in (None, "float32"):
        results = Engine(model, trained("unigram"), weights=weights).generate(requests)
        assert [list(result.ids) for result in results] == expected


@pytest.mark.usefixtures("pace")
def test_the_output_does_not_depend_on_the_batch() -> None:
    model, tokenizer = tiny("modern", context_length=16), trained("unigram")
    requests = [ask(place, tokens=3 + 5 * place) for place in range(6)] * 2
    alone = [Engine(model, tokenizer).generate([request])[0] for request in requests]
    for max_batch in (1, 2, 3, 12):  # with fewer rows than requests, rows are reused
        results = Engine(model, tokenizer, max_batch=max_batch).generate(requests)
        assert [r.ids for r in results] == [r.ids for r in alone], max_batch
        assert [r.text for r in results] == [r.text for r in alone], max_batch


@pytest.mark.usefixtures("pace")
@pytest.mark.parametrize("penalty", [None, 1.3])
def test_only_the_end_of_a_long_prompt_is_encoded(penalty: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The output is the same as with the complete prompt, and the repetition penalty applies to all of it."""
    text = " ".join([PROMPTS[2]] * 600)
    model, read = tiny("modern", context_length=24), []
    request = Request(prompt=text, tokens=6, settings=SamplingSettings(top_k=5, seed=1, repetition_penalty=penalty))
    plain = plainly(model, request)
    encode = Tokenizer.encode
    monkeypatch.setattr(Tokenizer, "encode", lambda self, text: read.append(len(text)) or encode(self, text))
    [result] = Engine(model, trained("unigram"), max_batch=1).generate([request])
    assert list(result.ids) == plain
    assert (max(read) == len(text)) if penalty else (max(read) < len(text) / 4)


def test_a_context_of_one_token_works() -> None:
    model = tiny("no positions", context_length=1, vocab_size=30)
    (result,) = Engine(model, None).generate([Request(prompt=(3, 4), tokens=5, settings=MIXED[1])])
    assert list(result.ids) == continue_plainly(model, [3, 4], 5, MIXED[1])


@pytest.mark.usefixtures("pace")
def test_a_text_prompt_starts_a_document_and_ids_are_used_unchanged() -> None:
    model, tokenizer = tiny(context_length=16), trained("unigram")
    bare = tuple(tokenizer.encode("নদীর ঘাটে"))
    prompts: list[Any] = ["নদীর ঘাটে", (tokenizer.special["eos"], *bare), bare]
    settings = SamplingSettings(seed=3, repetition_penalty=1.3)
    text, behind, alone = Engine(model, tokenizer).generate(
        [Request(prompt=prompt, tokens=12, settings=settings) for prompt in prompts]
    )
    assert text.ids == behind.ids != alone.ids
    assert text.text == behind.text


@pytest.mark.usefixtures("pace")
def test_end_tokens_are_exempt_from_the_repetition_penalty() -> None:
    """A document starts after an end token. If this token were penalized, no text would end when a penalty is used."""
    model, tokenizer = tiny("post-norm", context_length=16), trained("unigram")  # with an untied head
    end = tokenizer.special["eos"]
    with torch.no_grad():  # after মা: the end token has logit 10, token 7 has 5, all others 0
        last = model.hidden(torch.tensor([[end, *tokenizer.encode("মা")]]))[0, -1]
        for weight in model.head.parameters():
            weight.zero_()
        for token, wanted in ((end, 10), (7, 5)):
            model.head.weight[token] = wanted * last / (last @ last)
    request = Request(prompt="মা", tokens=3, settings=SamplingSettings(temperature=0, repetition_penalty=100))
    (result,) = Engine(model, tokenizer).generate([request])
    assert (result.stopped, result.ids) == ("end", ())
    assert plainly(model, request) == []


# -- output ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("pace")
def test_streamed_text_equals_the_decoded_tokens(kind: str) -> None:
    tokenizer = trained(kind)
    model = tiny(context_length=16, vocab_size=tokenizer.vocab_size)
    requests = [
        Request(prompt=PROMPTS[2], tokens=40, settings=SamplingSettings(seed=seed, top_k=None)) for seed in (1, 2)
    ]
    engine, start = Engine(model, tokenizer), tokenizer.encode(PROMPTS[2])
    for request, result in zip(requests, engine.generate(requests), strict=True):
        assert "".join(event.text for event in engine.stream(request)) == result.text
        assert tokenizer.decode(start) + result.text == tokenizer.decode([*start, *result.ids])


@pytest.mark.usefixtures("pace")
@pytest.mark.parametrize(
    ("tokens", "stopped", "ids"), [(9, "end", (20, 21)), (2, "length", (20, 21)), (0, "length", ())]
)
def test_stop_reasons(tokens: int, stopped: str, ids: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = tiny(context_length=16), trained("unigram")
    scripted(monkeypatch, (20, 21, tokenizer.special["eos"]))
    [found] = Engine(model, tokenizer).generate([Request(prompt="মা", tokens=tokens)])
    assert (found.stopped, found.ids, found.tokens) == (stopped, ids, len(ids))
    assert found.prompt_tokens == 1 + len(tokenizer.encode("মা")), "after the start-of-document token"
    assert (found.tokens_per_second > 0) == (found.text != "") == bool(ids)


@pytest.mark.parametrize("weights", [None, "float32"], ids=["the model", "in C"])
@pytest.mark.usefixtures("pace")
def test_the_number_of_tokens_takes_no_memory(weights: Any) -> None:
    engine = Engine(tiny("modern", context_length=64), None, weights=weights)
    [expected] = engine.generate([Request(prompt=(1, 2), tokens=20, settings=MIXED[1])])
    number = engine.submit(Request(prompt=(1, 2), tokens=10**12, settings=MIXED[1]))
    while not engine._active or len(engine._active[0].ids) < 20:
        engine.step()
    assert tuple(engine._active[0].ids[:20]) == expected.ids, "the same text, whatever the largest number of tokens"
    engine.cancel(number)


@pytest.mark.parametrize("stop", ["ছাদে", "ধ্যায় ছা", "।", " তারা", "সন্ধ্যায়"])
@pytest.mark.usefixtures("pace")
def test_a_stop_string_that_straddles_tokens_is_not_shown(stop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer, text = trained("char-codepoint"), "আমরা সন্ধ্যায় ছাদে বসে তারা দেখি। আর"
    model = tiny(context_length=64, vocab_size=tokenizer.vocab_size)
    scripted(monkeypatch, tokenizer.encode(text))
    engine, shown, result = Engine(model, tokenizer), "", None
    engine.submit(Request(prompt="", tokens=60, stop=(stop, "zz")))
    while engine.busy:
        for event in engine.step():
            shown, result = shown + event.text, event.result
    assert isinstance(result, Result)
    normal = tokenizer.normalize(text)
    letters_cut = stop == "ধ্যায় ছা"  # starts inside a cluster, because ন্ধ্যা is a single cluster
    if letters_cut:
        assert shown.startswith(normal)
    else:
        assert result.stopped == "stop string"
        assert shown == result.text == normal[: normal.index(tokenizer.normalize(stop))]


@pytest.mark.usefixtures("pace")
def test_probabilities_are_those_before_sampling_settings() -> None:
    model, tokenizer = tiny(context_length=16), trained("unigram")
    quiet, telling = ask(3, tokens=10), ask(3, tokens=10, alternatives=5)
    plain, result = Engine(model, tokenizer).generate([quiet, telling])
    assert (plain.ids, plain.text) == (result.ids, result.text)
    assert plain.written == ()
    ids = [tokenizer.special["eos"], *tokenizer.encode(PROMPTS[3]), *result.ids]
    start = len(ids) - len(result.ids)
    for place, token in enumerate(result.written):
        seen = torch.tensor([ids[: start + place][-16:]])
        expected = model(seen)[0, -1].log_softmax(dim=-1)
        assert token.id == result.ids[place]
        assert token.log_probability == pytest.approx(expected[token.id].item(), abs=1e-4)
        assert [other.id for other in token.alternatives] == expected.topk(5).indices.tolist()
        likelier = expected[expected > expected[token.id]]
        assert token.rank == len(likelier) + 1
        assert token.above == pytest.approx(likelier.exp().sum().item(), abs=1e-4)
        assert token.text == tokenizer.decode([token.id])


# -- cancelling --------------------------------------------------------------------------------------------------------


def test_a_waiting_request_can_be_cancelled_and_a_stream_abandoned() -> None:
    engine = Engine(tiny(context_length=12), trained("unigram"), max_batch=1)
    first, second = engine.submit(ask(1)), engine.submit(ask(2))
    engine.cancel(second)
    results = {event.number: event.result for event in engine.step()}
    assert results[second] is not None and results[second].ids == ()
    engine.cancel(first)
    assert [event.number for event in engine.step()] == [first]
    stream = engine.stream(ask(3))
    next(stream)
    stream.close()
    assert not engine.busy


@pytest.mark.usefixtures("pace")
def test_cancelling_leaves_the_others_unchanged() -> None:
    model, tokenizer = tiny(context_length=12), trained("unigram")
    requests = [ask(place, tokens=20) for place in range(5)]
    expected = [result.ids for result in Engine(model, tokenizer).generate(requests)]
    engine = Engine(model, tokenizer, max_batch=3)
    numbers = [engine.submit(request) for request in requests]
    results: dict[int, Result] = {}
    cancelled = False
    while engine.busy:
        results |= {event.number: event.result for event in engine.step() if event.result is not None}
        if not cancelled and numbers[0] not in results:
            for number in (numbers[1], numbers[1], 12345):
                engine.cancel(number)
            cancelled = True
    assert results[numbers[1]].stopped == "cancelled"
    assert results[numbers[1]].ids == expected[1][: results[numbers[1]].tokens]
    assert [results[n].ids for n in numbers if n != numbers[1]] == [expected[i] for i in (0, 2, 3, 4)]


# -- weights -----------------------------------------------------------------------------------------------------------


def test_joined_weights_change_nothing_and_leave_the_model_alone() -> None:
    model = tiny("grouped", context_length=12).train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    tokenizer = trained("unigram")
    as_it_is, joined = (Engine(model, tokenizer, weights=kind).generate([ask(1)])[0] for kind in (None, "float32"))
    assert as_it_is.ids == joined.ids
    assert model.training
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("weights", ["bfloat16", "int8"])
@pytest.mark.parametrize("layout", ["classic", "modern"])
@torch.no_grad()
def test_narrow_weights_give_almost_the_same_logits(weights: Any, layout: str) -> None:
    model = tiny(layout, context_length=16, vocab_size=50)
    narrow = Engine(model, None, weights=weights).model
    tokens = torch.randint(50, (4, 16))
    with at_work(narrow):
        wide, close = model(tokens), narrow(tokens).float()
    assert 0 < ((wide - close).norm() / wide.norm()).item() <= 0.05
    (result,) = Engine(model, None, weights=weights).generate([Request(prompt=(1, 2), tokens=30)])
    assert result.tokens == 30


def test_a_step_is_one_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    torch._dynamo.reset()
    model = tiny("modern", context_length=16, vocab_size=50)
    monkeypatch.setattr(torch_decoder, "native", lambda: None)  # as on a GPU
    engine = Engine(model, None, weights="float32")
    request = Request(prompt=(1, 2), tokens=10, settings=SamplingSettings(repetition_penalty=1.2))
    expected = Engine(model, None).generate([request])[0].ids
    graphs = 0

    def count(graph: Any, _: Any) -> Any:
        nonlocal graphs
        graphs += 1
        return graph.forward

    decoder = engine._decoder
    assert isinstance(decoder, torch_decoder.TorchDecoder)
    decoder._one = torch.compile(decoder._one, fullgraph=True, dynamic=False, backend=count)  # type: ignore[method-assign]
    decoder._plan = lambda answers, count: decoder.rows.plan(answers, 1, 16)  # type: ignore[method-assign]
    assert engine.generate([request])[0].ids == expected
    assert graphs == 1


# -- with transformers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gpt2", "qwen3"])
def test_greedy_tokens_equal_those_of_transformers(name: str, tmp_path: Path) -> None:
    model = shaken(CONFIGS[name]).model
    write_hf(Bundle(model, None), tmp_path / "hf")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "hf").eval()
    prompt = torch.randint(1, 50, (1, 6))
    for penalty in (None, 1.3):
        plain = {"max_new_tokens": 30, "do_sample": False, "pad_token_id": 0}
        other = theirs.generate(prompt, repetition_penalty=penalty or 1.0, **plain)
        settings = SamplingSettings(temperature=0, repetition_penalty=penalty)
        request = Request(prompt=tuple(prompt[0].tolist()), tokens=30, settings=settings)
        assert list(Engine(model, None).generate([request])[0].ids) == other[0, 6:].tolist()


# -- errors ------------------------------------------------------------------------------------------------------------


def test_invalid_requests_are_rejected() -> None:
    model = tiny(vocab_size=30)
    bert = BERT(BERTConfig(d_model=8, n_heads=2, n_layers=1, vocab_size=9, context_length=4))
    engine = Engine(model, None)
    cases: list[tuple[Any, str]] = [
        (lambda: Engine(bert, None), "a BERT cannot continue text; use a GPT"),  # type: ignore[arg-type]
        (lambda: Engine(model, None, max_batch=0), "max_batch=0 is too small"),
        (lambda: Engine(model, None, weights="int9"), "did you mean 'int8'"),  # type: ignore[arg-type]
        (lambda: engine.submit(Request(prompt="মা")), "a text prompt needs a tokenizer"),
        (lambda: engine.submit(Request()), "the prompt is empty, and the vocabulary has no start-of-document token"),
        (lambda: engine.submit(Request(prompt=(1, 30))), "token id 30 in the prompt is outside the vocabulary of 30"),
        (lambda: Request(tokens=-1), "tokens=-1 is negative; use 0 or more"),
        (lambda: Request(stop=("",)), "an empty stop string would end every answer"),
        (lambda: Request(alternatives=101), "alternatives=101 is out of range; use 0 to 100"),
    ]
    for make, wording in cases:
        with pytest.raises(UsageError, match=wording):
            make()
    assert not engine.busy
