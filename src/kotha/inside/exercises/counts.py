"""Questions 9 and 10: tokens counted, parameters by part, and memory. Counted by code for any preset."""

from collections.abc import Iterator

from kotha.inside.exercises.grading import Expected
from kotha.inside.exercises.question import Question
from kotha.inside.exercises.setting import Setting
from kotha.model.parameters import ParameterCount, count_parameters
from kotha.wording import Words, same

_UINT16_VALUES = 2**16
_FLOAT32_BYTES = 4


def count_questions(setting: Setting) -> Iterator[Question]:
    """The questions about data and size, in order."""
    yield from _samples(setting)
    yield from _uint16(setting)
    yield from _seen(setting)
    count = count_parameters(setting.config)
    yield from _parameters(setting, count)
    yield from _memory(setting, count)


def _samples(setting: Setting) -> Iterator[Question]:
    text = Words(
        "{tokens:,} tokens in {samples:,} {split} samples: how many tokens a sample, on average?",
        "{split} {samples:,}টি নমুনায় {tokens:,}টি টোকেন: প্রতি নমুনায় গড়ে কতটি টোকেন?",
    )
    names = (("training", "প্রশিক্ষণের"), ("validation", "যাচাইয়ের"))
    splits = zip((setting.training, setting.validation), names, strict=True)
    for part, ((samples, tokens), (en, bn)) in enumerate(splits, 1):
        said = Words(text.en.replace("{split}", en), text.bn.replace("{split}", bn))
        worked = same(f"{tokens:,} / {samples:,} = {tokens / samples:.2f}")
        expected = Expected((tokens / samples,))
        yield Question(f"9a-{part}", said.fill(tokens=tokens, samples=samples), (worked,), expected)
    yield Question(
        "9a-why",
        Words("What do the two averages tell about the tokenization?", "দুটি গড় টোকেনাইজেশন সম্পর্কে কী বলে?"),
        (_ALIKE,),
    )


def _uint16(setting: Setting) -> Iterator[Question]:
    vocabulary = setting.config.vocab_size
    enough = (
        Words("{vocabulary:,} tokens need less, so it is enough.", "{vocabulary:,}টি টোকেনে তার চেয়ে কম লাগে, তাই যথেষ্ট।")
        if vocabulary <= _UINT16_VALUES
        else Words(
            "{vocabulary:,} tokens need more: use uint32.", "{vocabulary:,}টি টোকেনে তার চেয়ে বেশি লাগে: uint32 নিন।"
        )
    )
    ids = Words(
        "2^16 = {values:,}: the ids 0 to {last:,}. ", "2^16 = {values:,}: অর্থাৎ 0 থেকে {last:,} পর্যন্ত নম্বর। "
    ).fill(values=_UINT16_VALUES, last=_UINT16_VALUES - 1)
    rest = enough.fill(vocabulary=vocabulary)
    yield Question(
        "9b",
        Words(
            "Tokens are stored as uint16. How many tokens can a vocabulary have at most?",
            "টোকেন রাখা হয় uint16 হিসেবে। শব্দভান্ডারে সর্বোচ্চ কতটি টোকেন থাকতে পারে?",
        ),
        (Words(ids.en + rest.en, ids.bn + rest.bn),),
        Expected((float(_UINT16_VALUES),), exact=True),
    )


def _seen(setting: Setting) -> Iterator[Question]:
    per_step = setting.batch_size * setting.config.context_length
    total, data = per_step * setting.iterations, setting.training[1]
    sizes = {"batch": setting.batch_size, "length": setting.config.context_length, "steps": setting.iterations}
    yield Question(
        "9c-1",
        Words(
            "A batch of {batch} sequences of {length} tokens: how many tokens an iteration?",
            "ব্যাচে {batch}টি সিকোয়েন্স, প্রতিটিতে {length}টি টোকেন: প্রতি ধাপে কতটি টোকেন?",
        ).fill(**sizes),
        (same(f"{setting.batch_size} × {setting.config.context_length} = {per_step:,}"),),
        Expected((float(per_step),), exact=True),
    )
    yield Question(
        "9c-2",
        Words("How many tokens after {steps:,} iterations?", "{steps:,} ধাপের পরে মোট কতটি টোকেন?").fill(**sizes),
        (same(f"{per_step:,} × {setting.iterations:,} = {total:,}"),),
        Expected((float(total),)),
    )
    yield Question(
        "9c-3",
        Words(
            "The training set has {tokens:,} tokens. How many times has it been seen by then?",
            "প্রশিক্ষণের লেখায় {tokens:,}টি টোকেন। তত ধাপে মডেল পুরো লেখাটা কতবার দেখেছে?",
        ).fill(tokens=data),
        (same(f"{total:,} / {data:,} = {total / data:.2f}"),),
        Expected((total / data,)),
    )


def _parameters(setting: Setting, count: ParameterCount) -> Iterator[Question]:
    config = setting.config
    about = Words(
        "{layers} layers, {heads} heads, width {width}, vocabulary {vocabulary:,}. How many parameters has the token "
        "embedding?",
        "{layers}টি স্তর, {heads}টি হেড, প্রস্থ {width}, শব্দভান্ডার {vocabulary:,}। টোকেন-এমবেডিংয়ে কতটি প্যারামিটার?",
    ).fill(layers=config.n_layers, heads=config.n_heads, width=config.d_model, vocabulary=config.vocab_size)
    table = f"{config.vocab_size:,} × {config.d_model} = {count.token_embedding:,}"
    yield Question("10a-1", about, (same(table),), Expected((float(count.token_embedding),)))
    head = Words(
        "How many has one attention head: its parts of Q, K, V and of the output projection?",
        "একটি অ্যাটেনশন হেডে কতটি: Q, K, V আর আউটপুট প্রজেকশনে তার অংশ মিলিয়ে?",
    )
    bare = 4 * config.d_model * config.d_head
    worked = _with_biases(f"4 × {config.d_model} × {config.d_head}", bare, count.attention_per_head)
    yield Question("10a-2", head, (same(worked),), _with_or_without(count.attention_per_head, bare))
    matrices = 3 if config.activation == "swiglu" else 2
    bare = matrices * config.d_model * config.d_ff
    worked = _with_biases(f"{matrices} × {config.d_model} × {config.d_ff}", bare, count.feedforward_per_layer)
    mlp = Words("How many has one MLP block?", "একটি MLP ব্লকে কতটি?")
    yield Question("10a-3", mlp, (same(worked),), _with_or_without(count.feedforward_per_layer, bare))
    parts = ("token_embedding", "positions", "attention", "feedforward", "norms", "head")
    named = [f"{name.replace('_', ' ')} {getattr(count, name):,}" for name in parts if getattr(count, name)]
    whole = Words("How many has the whole model?", "পুরো মডেলে মোট কতটি?")
    addition = same(f"{' + '.join(named)} = {count.total:,}")
    yield Question("10a-4", whole, (addition,), Expected((float(count.total),)))


def _with_biases(product: str, bare: int, counted: int) -> str:
    rest = "" if bare == counted else f"; + {counted - bare:,} biases = {counted:,}"
    return f"{product} = {bare:,}{rest}"


def _with_or_without(counted: int, bare: int) -> Expected:
    """A count with its biases; the workshop asks for an estimate, so one without them is right too."""
    return Expected((float(counted),), others=((float(bare),),))


def _memory(setting: Setting, count: ParameterCount) -> Iterator[Question]:
    n_bytes = count.total * _FLOAT32_BYTES
    gigabytes, gibibytes = n_bytes / 1e9, n_bytes / 2**30
    yield Question(
        "10b",
        Words(
            "How much memory do {total:,} parameters take in float32, in GB (or GiB)?",
            "{total:,}টি প্যারামিটার float32-এ রাখতে কত GB (বা GiB) মেমরি লাগে?",
        ).fill(total=count.total),
        (same(f"{count.total:,} × {_FLOAT32_BYTES} = {n_bytes:,} bytes = {gigabytes:.4g} GB = {gibibytes:.4g} GiB"),),
        Expected((gigabytes,), others=((gibibytes,),), bytes=float(n_bytes)),
    )
    took = "" if setting.measured_gigabytes is None else " ({took} GB)"
    yield Question(
        "10b-parts",
        Words(
            f"Training takes far more{took}. What else is in memory besides the parameters?",
            f"প্রশিক্ষণে লাগে অনেক বেশি{took}। প্যারামিটার ছাড়া মেমরিতে আর কী থাকে?",
        ).fill(took=setting.measured_gigabytes),
        (_PARTS_OF_MEMORY.fill(one=gigabytes, two=2 * gigabytes, four=4 * gigabytes),),
    )


_ALIKE = Words(
    "They are nearly the same: both splits hold the same kind of text and are cut equally fine. Divided by the "
    "words of a sample they say how many pieces a Bangla word takes; `kotha tokenizer card` measures it.",
    "দুটি প্রায় সমান: দুই ভাগে একই ধরনের লেখা, টুকরোও সমান সূক্ষ্ম। নমুনার শব্দসংখ্যা দিয়ে ভাগ করলে জানা যায়, "
    "একটি বাংলা শব্দে কত টুকরো লাগে; তা মাপে `kotha tokenizer card`।",
)
_PARTS_OF_MEMORY = Words(
    "Gradients, one for each parameter: {one:.2g} GB. Adam's two moments: {two:.2g} GB. With the parameters "
    "{four:.2g} GB. The rest is activations kept for the way back, above all the logits, and what the GPU library "
    "itself takes.",
    "গ্রেডিয়েন্ট, প্রতি প্যারামিটারে একটি: {one:.2g} GB। Adam-এর দুটি মোমেন্ট: {two:.2g} GB। প্যারামিটারসহ "
    "{four:.2g} GB। বাকিটা ফেরার পথের জন্য রাখা অ্যাক্টিভেশন, সবচেয়ে বেশি logits, আর GPU-র লাইব্রেরির নিজের জায়গা।",
)
