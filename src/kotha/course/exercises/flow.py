"""Questions 6 to 8: shapes on the way through the model, the loss and its learning rate, and writing."""

import math
from collections.abc import Iterator

from kotha.course.exercises.grading import Expected, shape
from kotha.course.exercises.setting import Question, Setting
from kotha.i18n.wording import Words
from kotha.training.config import TrainConfig
from kotha.training.optim.schedule import learning_rate_share


def flow_questions(setting: Setting) -> Iterator[Question]:
    """The questions about the whole model, in order."""
    yield from _shapes(setting)
    yield from _block(setting)
    yield from _loss(setting)
    yield from _rates(setting)
    yield from _writing(setting)


def _shapes(setting: Setting) -> Iterator[Question]:
    batch, length, width = (setting.sizes[name] for name in ("batch", "length", "width"))
    yield setting.ask(
        "6a",
        "A batch of {batch} sequences of {length} tokens: what shape has the input idx?",
        "একটি ব্যাচে {batch}টি সিকোয়েন্স, প্রতিটিতে {length}টি টোকেন: ইনপুট idx-এর আকার কত?",
        f"(batch, sequence) = ({batch}, {length})",
        expected=shape(batch, length),
    )
    added = (
        "Token and positional embeddings are added. What shape has x?",
        "টোকেন-এমবেডিং আর অবস্থান-এমবেডিং যোগ করার পর x-এর আকার কত?",
    )
    not_added = (
        "Tokens are embedded (this model adds no positions here). What shape has x?",
        "টোকেন এমবেডিংয়ে বদলানোর পর (এই মডেলে এখানে অবস্থান যোগ হয় না) x-এর আকার কত?",
    )
    yield setting.ask(
        "6b",
        *(added if setting.config.positions in ("learned", "sinusoidal") else not_added),
        Words(
            "Each token has become a vector of {width} numbers: ({batch}, {length}, {width}).",
            "প্রতিটি টোকেন এখন {width}টি সংখ্যার একটি ভেক্টর: ({batch}, {length}, {width})।",
        ),
        expected=shape(batch, length, width),
    )


def _block(setting: Setting) -> Iterator[Question]:
    width, inner = setting.sizes["width"], setting.sizes["inner"]
    yield setting.ask(
        "6c",
        "A token enters a block as {width} numbers. How many does it have at its widest, inside the MLP?",
        "একটি টোকেন {width}টি সংখ্যা হয়ে ব্লকে ঢোকে। MLP-এর ভেতরে সবচেয়ে চওড়া অবস্থায় তার কতটি সংখ্যা থাকে?",
        f"{width:,} → {inner:,} → {width:,}",
        expected=Expected((inner,), exact=True),
    )
    yield setting.ask(
        "6c-trace",
        "Trace its shape through one block. Where does it change?",
        "একটি ব্লকের ভেতর দিয়ে তার আকার অনুসরণ করুন। কোথায় কোথায় বদলায়?",
        _TRACE,
    )
    logits = setting.sizes["batch"], setting.sizes["length"], setting.sizes["vocabulary"]
    yield setting.ask(
        "6d",
        "What shape have the logits?",
        "লজিটের আকার কত?",
        f"(batch, sequence, vocabulary) = {logits}",
        expected=shape(*logits),
    )
    yield setting.ask(
        "6d-why",
        "What does each element of the logits say, and why {vocabulary:,} of them at each place?",
        "লজিটের প্রতিটি সংখ্যা কী বলে, আর প্রতিটি অবস্থানে {vocabulary:,}টি কেন লাগে?",
        _LOGITS,
    )


def _loss(setting: Setting) -> Iterator[Question]:
    yield setting.ask(
        "7a",
        "The next token has the number {true}. Write the loss of this one prediction as a formula.",
        "পরের টোকেনটির নম্বর {true}। শুধু এই অনুমানের লসের সূত্র লিখুন।",
        Words(
            "L = −log p[{true}], where p = softmax(logits): the logarithm of what the model gave to the true token "
            "alone.",
            "L = −log p[{true}], যেখানে p = softmax(logits)। আসল টোকেনটিকে মডেল যে সম্ভাবনা দিয়েছে, শুধু তারই লগারিদম।",
        ),
        true=setting.true_token,
    )
    train, validation = setting.losses
    yield setting.ask(
        "7b",
        "{whose}: training loss {train}, validation loss {validation} at iteration {step:,}. What does this say?",
        "{whose_bn}: {step:,} নম্বর ধাপে প্রশিক্ষণের লস {train}, যাচাইয়ের লস {validation}। এ থেকে কী বোঝা যায়?",
        _OVERFITTING.fill(gap=validation - train, train=math.exp(train), validation=math.exp(validation)),
        train=train,
        validation=validation,
        step=setting.iterations,
        whose="The workshop's model" if setting.seed is None else "A model of this size",
        whose_bn="কর্মশালার মডেল" if setting.seed is None else "এই মাপের একটি মডেল",
    )


def _rates(setting: Setting) -> Iterator[Question]:
    course = setting.course
    for part, step in enumerate(setting.rate_steps, 1):
        found = course.learning_rate * learning_rate_share(step, course)
        yield setting.ask(
            f"7c-{part}",
            "Learning rate {rate:g}, warm-up {warmup:,} iterations, then cosine decay to a tenth, max_iters = "
            "{steps:,} (the workshop does not say it; choose your own as steps). What is it at iteration {step:,}?",
            "শেখার হার {rate:g}, {warmup:,} ধাপ ওয়ার্ম-আপ, তারপর কোসাইন ধরে দশ ভাগের এক ভাগ পর্যন্ত নামে, max_iters = "
            "{steps:,} (কর্মশালায় বলা নেই; steps দিয়ে বেছে নিন)। {step:,} নম্বর ধাপে হার কত?",
            *_schedule(course, step, found),
            expected=Expected((found,), slack=found * 5e-4),
            rate=course.learning_rate,
            warmup=course.warmup_steps,
            steps=course.steps,
            step=step,
        )


def _schedule(course: TrainConfig, step: int, found: float) -> list[str]:
    """The workshop's formulas (13) and (14) with the numbers put in."""
    rate, warmup = course.learning_rate, course.warmup_steps
    if step < warmup:
        return [f"lr = {rate:g} × {step} / {warmup} = {found:.6g}"]
    passed = min(1.0, (step - warmup) / max(1, course.steps - warmup))
    return [
        f"pct = ({step} − {warmup}) / ({course.steps} − {warmup}) = {passed:.6f}",
        f"lr = 0.1 × {rate:g} + 0.9 × {rate:g} × 0.5 × (1 + cos(π × {passed:.6f})) = {found:.6g}",
    ]


def _writing(setting: Setting) -> Iterator[Question]:
    yield setting.ask(
        "8a",
        "From the prompt “বাংলাদেশ ব্যাংক” to an article: how does the prompt become numbers, why out[:, "
        "-BLOCK_SIZE:], what does temperature do (0.1 against 2.0), what is top_k=40 for?",
        "“বাংলাদেশ ব্যাংক” থেকে একটি সংবাদ: লেখাটি কীভাবে সংখ্যা হয়, out[:, -BLOCK_SIZE:] কেন, temperature কী "
        "করে (0.1 আর 2.0 হলে), top_k=40 কীসের জন্য?",
        _GENERATION,
    )
    yield setting.ask(
        "8b",
        "How many forward passes does it take to write {count} new tokens?",
        "{count}টি নতুন টোকেন লিখতে কতবার ফরোয়ার্ড পাস লাগে?",
        Words(
            "One for each token, since each is read before the next can be drawn: {count}.",
            "প্রতি টোকেনে একবার, কারণ একটি টোকেন পড়ার পরেই পরেরটি বাছা যায়: {count}।",
        ),
        expected=Expected((setting.new_tokens,), exact=True),
        count=setting.new_tokens,
    )


_TRACE = Words(
    "{width} after the first norm; in the attention {heads} heads × {d_head} for Q, K and V, joined again to "
    "{width}; {width} after the sum and the second norm; {inner} inside the MLP, then {width} again. In and out it "
    "is {width}, so that blocks can be stacked and what went in can be added to what comes out.",
    "প্রথম নর্মের পরে {width}; অ্যাটেনশনে Q, K, V-এর জন্য {heads}টি হেড × {d_head}, জোড়া লেগে আবার {width}; যোগ আর "
    "দ্বিতীয় নর্মের পরে {width}; MLP-এর ভেতরে {inner}, তারপর আবার {width}। ঢোকা আর বেরোনোর সময় {width}, তাই ব্লকের "
    "পর ব্লক বসানো যায়, আর ব্লকে যা ঢুকেছিল তা ফলের সঙ্গে যোগ করা যায় (রেসিডুয়াল সংযোগ)।",
)
_LOGITS = Words(
    "Element (b, t, v) is the score of token v as the next one after place t of sequence b; softmax makes "
    "probabilities of the {vocabulary:,} scores. Any token of the vocabulary could come next, so each needs a score.",
    "(b, t, v) ঘরের সংখ্যাটি হলো b নম্বর সিকোয়েন্সে t অবস্থানের পরে v টোকেন আসার স্কোর। সফটম্যাক্স {vocabulary:,}টি "
    "স্কোরকে সম্ভাবনা বানায়। শব্দভান্ডারের যেকোনো টোকেনই পরে আসতে পারে, তাই প্রত্যেকটির একটি স্কোর চাই।",
)
_OVERFITTING = Words(
    "It overfits: on its own text it is as unsure as among {train:.0f} equal choices, on unseen text as among "
    "{validation:.0f}. The gap of {gap:.2f} nats is what it has learned by heart and cannot use elsewhere.",
    "মডেলটি মুখস্থ করছে (ওভারফিটিং): প্রশিক্ষণের লেখায় মডেলটি যেন {train:.0f}টি সমান সম্ভাব্য টোকেন থেকে একটি বাছছে, "
    "না-দেখা লেখায় {validation:.0f}টি থেকে। {gap:.2f} ন্যাটের এই ফারাকটুকু মুখস্থ করা; অন্য কোথাও তা কাজে লাগে না।",
)
_GENERATION = Words(
    "1. The tokenizer cuts the prompt into pieces and gives each its number in the vocabulary. 2. The model has "
    "places for {length} tokens only, so it is handed the last {length}. 3. Logits are divided by the temperature: "
    "0.1 makes the best token nearly certain, 2.0 flattens the choice and the text wanders. 4. Only the 40 best "
    "tokens remain, so that the long tail of unlikely ones, large in sum, is never drawn from.",
    "প্রথমত, টোকেনাইজার লেখাটিকে টুকরা করে প্রতিটি টুকরাকে শব্দভান্ডারের নম্বর দেয়। দ্বিতীয়ত, মডেলে মাত্র {length}টি "
    "টোকেনের জায়গা আছে, তাই শেষের {length}টিই দেওয়া হয়। তৃতীয়ত, লজিটকে `temperature` দিয়ে ভাগ করা হয়: 0.1 হলে সেরা "
    "টোকেনটি প্রায় নিশ্চিত, 2.0 হলে সম্ভাবনাগুলো সমান হয়ে আসে, লেখা এলোমেলো হয়। চতুর্থত, সেরা ৪০টি টোকেনই থাকে; "
    "অসম্ভাব্য টোকেনের লম্বা লেজ থেকে কখনো বাছা হয় না, যদিও সেগুলোর মোট সম্ভাবনা কম নয়।",
)
