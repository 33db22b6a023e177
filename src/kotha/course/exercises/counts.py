"""Questions 9 and 10: tokens counted, parameters by part, and memory. Counted by code for any preset."""

import math
from collections.abc import Iterator

from kotha.course.exercises.grading import Expected
from kotha.course.exercises.setting import Question, Setting
from kotha.i18n.wording import Words
from kotha.model.parameters import ParameterCount, count_parameters

_UINT16_VALUES = 2**16
_FLOAT32_BYTES = 4


def count_questions(setting: Setting) -> Iterator[Question]:
    """The questions about data and size, in order."""
    yield from _samples(setting)
    yield _uint16(setting)
    yield from _seen(setting)
    count = count_parameters(setting.config)
    yield from _parameters(setting, count)
    yield from _memory(setting, count)


def _samples(setting: Setting) -> Iterator[Question]:
    names = (("training", "প্রশিক্ষণের"), ("validation", "যাচাইয়ের"))
    splits = zip((setting.training, setting.validation), names, strict=True)
    for part, ((samples, tokens), (en, bn)) in enumerate(splits, 1):
        yield setting.ask(
            f"9a-{part}",
            f"{{tokens:,}} tokens in {{samples:,}} {en} samples: how many tokens a sample, on average?",
            f"{bn} {{samples:,}}টি নমুনায় {{tokens:,}}টি টোকেন: প্রতি নমুনায় গড়ে কতটি টোকেন?",
            f"{tokens:,} / {samples:,} = {tokens / samples:.2f}",
            expected=Expected((tokens / samples,)),
            tokens=tokens,
            samples=samples,
        )
    yield setting.ask(
        "9a-why",
        "What do the two averages tell about the tokenization?",
        "লেখা যেভাবে টোকেনে ভাগ হয়েছে, দুটি গড় তা নিয়ে কী বলে?",
        _ALIKE,
    )


def _uint16(setting: Setting) -> Question:
    enough = (
        "{vocabulary:,} tokens need less, so it is enough.",
        "{vocabulary:,}টি টোকেনে তার চেয়ে কম লাগে, তাই যথেষ্ট।",
    )
    too_few = (
        "{vocabulary:,} tokens need more: use uint32.",
        "{vocabulary:,}টি টোকেনে তার চেয়ে বেশি লাগে: uint32 নিন।",
    )
    en, bn = enough if setting.config.vocab_size <= _UINT16_VALUES else too_few
    return setting.ask(
        "9b",
        "Tokens are stored as uint16. How many tokens can a vocabulary have at most?",
        "টোকেন রাখা হয় uint16 হিসেবে। শব্দভান্ডারে সর্বোচ্চ কতটি টোকেন থাকতে পারে?",
        Words(
            "2^16 = {values:,}: the ids 0 to {last:,}. " + en,
            "2^16 = {values:,}, তাই টোকেন-নম্বর হতে পারে 0 থেকে {last:,}। " + bn,
        ),
        expected=Expected((float(_UINT16_VALUES),), exact=True),
        values=_UINT16_VALUES,
        last=_UINT16_VALUES - 1,
    )


def _seen(setting: Setting) -> Iterator[Question]:
    batch, length, steps = setting.batch_size, setting.config.context_length, setting.iterations
    per_step, data = batch * length, setting.training[1]
    total = per_step * steps
    yield setting.ask(
        "9c-1",
        "A batch of {batch} sequences of {length} tokens: how many tokens an iteration?",
        "ব্যাচে {batch}টি সিকোয়েন্স, প্রতিটিতে {length}টি টোকেন: প্রতি ধাপে কতটি টোকেন?",
        f"{batch} × {length} = {per_step:,}",
        expected=Expected((float(per_step),), exact=True),
    )
    yield setting.ask(
        "9c-2",
        "How many tokens after {steps:,} iterations?",
        "{steps:,} ধাপের পরে মোট কতটি টোকেন?",
        f"{per_step:,} × {steps:,} = {total:,}",
        expected=Expected((float(total),)),
        steps=steps,
    )
    yield setting.ask(
        "9c-3",
        "The training set has {tokens:,} tokens. How many times has it been seen by then?",
        "প্রশিক্ষণের লেখায় {tokens:,}টি টোকেন। তত ধাপে মডেল পুরো লেখাটি কতবার দেখেছে?",
        f"{total:,} / {data:,} = {total / data:.2f}",
        expected=Expected((total / data,)),
        tokens=data,
    )


def _parameters(setting: Setting, count: ParameterCount) -> Iterator[Question]:
    config = setting.config
    yield setting.ask(
        "10a-1",
        "{layers} layers, {heads} heads, width {width}, vocabulary {vocabulary:,}. How many parameters has the token "
        "embedding?",
        "{layers}টি স্তর, {heads}টি হেড, প্রস্থ {width}, শব্দভান্ডার {vocabulary:,}। টোকেন-এমবেডিংয়ে কতটি প্যারামিটার?",
        f"{config.vocab_size:,} × {config.d_model} = {count.token_embedding:,}",
        expected=Expected((float(count.token_embedding),)),
    )
    head = (
        "How many has one attention head: its parts of Q, K, V and of the output projection?",
        "একটি অ্যাটেনশন হেডে কতটি: Q, K, V আর আউটপুট প্রজেকশনে তার অংশ মিলিয়ে?",
    )
    mlp = ("How many has one MLP block?", "একটি MLP ব্লকে কতটি?")
    matrices = 3 if config.activation == "swiglu" else 2
    for number, text, sizes, counted in (
        ("10a-2", head, (4, config.d_model, config.d_head), count.attention_per_head),
        ("10a-3", mlp, (matrices, config.d_model, config.d_ff), count.feedforward_per_layer),
    ):
        # The workshop asks for an estimate, so a count without the biases is right too.
        bare = math.prod(sizes)
        rest = "" if bare == counted else f"; + {counted - bare:,} biases = {counted:,}"
        expected = Expected((float(counted),), others=((float(bare),),))
        yield setting.ask(number, *text, f"{' × '.join(map(str, sizes))} = {bare:,}{rest}", expected=expected)
    parts = ("token_embedding", "positions", "attention", "feedforward", "norms", "head")
    named = [f"{name.replace('_', ' ')} {getattr(count, name):,}" for name in parts if getattr(count, name)]
    whole = ("How many has the whole model?", "পুরো মডেলে মোট কতটি?")
    addition = f"{' + '.join(named)} = {count.total:,}"
    yield setting.ask("10a-4", *whole, addition, expected=Expected((float(count.total),)))


def _memory(setting: Setting, count: ParameterCount) -> Iterator[Question]:
    n_bytes = count.total * _FLOAT32_BYTES
    gigabytes, gibibytes = n_bytes / 1e9, n_bytes / 2**30
    yield setting.ask(
        "10b",
        "How much memory do {total:,} parameters take in float32, in GB (or GiB)?",
        "{total:,}টি প্যারামিটার float32-এ রাখতে কত GB (বা GiB) মেমরি লাগে?",
        f"{count.total:,} × {_FLOAT32_BYTES} = {n_bytes:,} bytes = {gigabytes:.4g} GB = {gibibytes:.4g} GiB",
        expected=Expected((gigabytes,), others=((gibibytes,),), bytes=float(n_bytes)),
        total=count.total,
    )
    took = "" if setting.measured_gigabytes is None else " ({took} GB)"
    yield setting.ask(
        "10b-parts",
        f"Training takes far more{took}. What else is in memory besides the parameters?",
        f"প্রশিক্ষণে লাগে অনেক বেশি{took}। প্যারামিটার ছাড়া মেমরিতে আর কী থাকে?",
        _PARTS_OF_MEMORY.fill(one=gigabytes, two=2 * gigabytes, four=4 * gigabytes),
        took=setting.measured_gigabytes,
    )


_ALIKE = Words(
    "They are nearly the same: both splits hold the same kind of text and are cut equally fine. Divided by the "
    "words of a sample they say how many pieces a Bangla word takes; `kotha tokenizer card` measures it.",
    "দুটি প্রায় সমান: দুই ভাগে একই ধরনের লেখা, আর টোকেনাইজার দুই ভাগের লেখাই সমান ছোট টুকরায় কেটেছে। নমুনার শব্দসংখ্যা "
    "দিয়ে ভাগ করলে জানা যায়, একটি বাংলা শব্দে কত টুকরা লাগে; তা মাপে `kotha tokenizer card`।",
)
_PARTS_OF_MEMORY = Words(
    "Gradients, one for each parameter: {one:.2g} GB. Adam's two moments: {two:.2g} GB. With the parameters "
    "{four:.2g} GB. The rest is activations kept for the way back, above all the logits, and what the GPU library "
    "itself takes.",
    "গ্রেডিয়েন্ট, প্রতি প্যারামিটারে একটি: {one:.2g} GB। Adam-এর দুটি মোমেন্ট: {two:.2g} GB। প্যারামিটারসহ "
    "{four:.2g} GB। বাকি মেমরি নেয় ব্যাকওয়ার্ড পাসের জন্য জমা রাখা অ্যাক্টিভেশন (সবচেয়ে বেশি লজিট) আর GPU লাইব্রেরি নিজে।",
)
