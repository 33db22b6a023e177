"""Hints in steps: where to look, how to begin, and of a matrix one cell worked out; never the answer.

Those of an open question come from its rubric. Numbers are filled in as in the question itself.
"""

from kotha.course.worksheet.sheet import Sheet, SheetStep
from kotha.course.worksheet.showing import arithmetic
from kotha.i18n.wording import Words

_DECIMALS = 6

# By the number of the question.
HINTS: dict[str, tuple[Words, ...]] = {
    "2a": (
        Words("What becomes of a row when a matrix is turned?", "ট্রান্সপোজ করলে একটি সারি কী হয়ে যায়?"),
        Words("K has {columns} columns, so Kᵀ has as many rows.", "K-এর {columns}টি কলাম, তাই Kᵀ-এর সারি ততগুলোই।"),
    ),
    "2b-shape": (
        Words("Each token meets each token: how many pairs?", "প্রতিটি টোকেন প্রতিটি টোকেনের সঙ্গে মেলে: মোট কত জোড়া?"),
        Words("In a product the inner sizes fall away.", "গুণ করলে ভেতরের মাপ দুটি হারিয়ে যায়, বাইরের দুটি থাকে।"),
    ),
    "3a": (
        Words("Which tokens may the first one see?", "প্রথম টোকেন কোন কোন টোকেন দেখতে পারে?"),
        Words(
            "The first row is a 1, and 0 behind it; each row has one 1 more.",
            "প্রথম সারিতে একটি ১, বাকি সব ০; পরের প্রতি সারিতে একটি করে ১ বাড়ে।",
        ),
    ),
    "6a": (
        Words("A row for each sequence, a number for each token.", "প্রতি সিকোয়েন্সে একটি সারি, প্রতি টোকেনে একটি সংখ্যা।"),
    ),
    "6b": (
        Words("What does the embedding put in the place of one number?", "এমবেডিং একটি সংখ্যার জায়গায় কী বসায়?"),
        Words("One more axis, as long as the model is wide.", "আরও একটি অক্ষ যোগ হয়, তার দৈর্ঘ্য মডেলের প্রস্থের সমান।"),
    ),
    "6c": (
        Words("Which part of the block widens a vector?", "ব্লকের কোন অংশ ভেক্টরকে চওড়া করে?"),
        Words(
            "The feed-forward part has an inner width of its own, usually four times the model's.",
            "ফিড-ফরোয়ার্ড অংশের ভেতরের প্রস্থ আলাদা, সাধারণত মডেলের চার গুণ।",
        ),
    ),
    "6d": (
        Words(
            "What is said at each place: one number, or one for each token of the vocabulary?",
            "প্রতিটি অবস্থানে কী বলা হয়: একটি সংখ্যা, নাকি শব্দভান্ডারের প্রতিটি টোকেনের জন্য একটি?",
        ),
    ),
    "7c-1": (
        Words(
            "Is iteration {step:,} before the end of the warm-up, or after it?",
            "{step:,} নম্বর ধাপ কি ওয়ার্ম-আপ শেষ হওয়ার আগে, না পরে?",
        ),
        Words("lr = LR × iteration / warm-up", "lr = LR × ধাপ / ওয়ার্ম-আপ"),
    ),
    "7c-2": (
        Words(
            "First pct: which share of the way after the warm-up is done?",
            "আগে pct বের করুন: ওয়ার্ম-আপের পরের পথের কত অংশ পার হয়েছে?",
        ),
        Words(
            "lr = 0.1 × LR + 0.9 × LR × 0.5 × (1 + cos(π × pct)); the angle is in radians.",
            "lr = 0.1 × LR + 0.9 × LR × 0.5 × (1 + cos(π × pct))। কোণটি রেডিয়ানে।",
        ),
    ),
    "8b": (Words("How many tokens does the model write in one pass?", "একবার ফরোয়ার্ড পাসে মডেল কয়টি টোকেন লেখে?"),),
    "9a-1": (Words("All tokens, shared out evenly among the samples.", "সব টোকেন নমুনাগুলোর মধ্যে সমান ভাগ করুন।"),),
    "9a-2": (Words("As for training: tokens over samples.", "প্রশিক্ষণের মতোই: টোকেন ভাগ নমুনা।"),),
    "9b": (
        Words("How many different numbers can 16 bits spell?", "১৬টি বিটে কতগুলো আলাদা সংখ্যা লেখা যায়?"),
        Words("Each bit doubles the count, and 0 is a number too.", "প্রতিটি বিটে সংখ্যাটি দ্বিগুণ হয়, আর শূন্যও একটি নম্বর।"),
    ),
    "9c-1": (Words("So many sequences, each so long.", "এতগুলো সিকোয়েন্স, প্রতিটি এত লম্বা।"),),
    "9c-2": (Words("The tokens of one iteration, as often as there are iterations.", "এক ধাপের টোকেন, যত ধাপ ততবার।"),),
    "9c-3": (
        Words(
            "All tokens that were seen, over the tokens of the training set.",
            "মোট যত টোকেন দেখা হলো, তাকে প্রশিক্ষণের টোকেনসংখ্যা দিয়ে ভাগ করুন।",
        ),
    ),
    "10a-1": (
        Words(
            "A table: a row for each token, as many numbers as the model is wide.",
            "একটি ছক: প্রতি টোকেনে একটি সারি, প্রতি সারিতে মডেলের প্রস্থের সমান সংখ্যা।",
        ),
    ),
    "10a-2": (
        Words(
            "Four matrices have a part for each head. Which?", "চারটি ম্যাট্রিক্সে প্রতি হেডের একটি করে অংশ আছে। কোন চারটি?"
        ),
        Words(
            "Each part goes from the model's width to the head's, or back.",
            "প্রতিটি অংশ মডেলের প্রস্থ থেকে হেডের প্রস্থে নেয়, বা ফিরিয়ে আনে।",
        ),
    ),
    "10a-3": (
        Words("One matrix widens, another narrows again.", "একটি ম্যাট্রিক্স চওড়া করে, আরেকটি আবার আগের প্রস্থে ফেরায়।"),
        Words(
            "From {width} to {inner}, and from {inner} to {width}.", "{width} থেকে {inner}, আবার {inner} থেকে {width}।"
        ),
    ),
    "10a-4": (
        Words(
            "Embedding and head, and in each of {layers} layers attention and MLP; add norms and positions.",
            "এমবেডিং আর শেষ প্রজেকশন, সঙ্গে {layers}টি স্তরের প্রতিটিতে অ্যাটেনশন আর MLP; নর্ম আর অবস্থানও ধরুন।",
        ),
        Words(
            "Count the head's table only where it is not the embedding's own.",
            "শেষ প্রজেকশনের ছক এমবেডিংয়ের থেকে আলাদা হলে তবেই গুনুন।",
        ),
    ),
    "10b": (
        Words("How many bytes has a float32?", "একটি float32 সংখ্যায় কত বাইট?"),
        Words("Parameters × bytes, then over a thousand million.", "প্যারামিটার × বাইট, তারপর একশ কোটি দিয়ে ভাগ।"),
    ),
    "11c": (
        Words("Side by side: which axis grows?", "পাশাপাশি বসালে কোন অক্ষ বাড়ে?"),
        Words("Only the last: {heads} times {d_head}.", "শুধু শেষেরটি: {heads} গুণ {d_head}।"),
    ),
    "12a": (
        Words("What must be there before the first matrix can be multiplied?", "প্রথম ম্যাট্রিক্স গুণের আগে কী কী থাকতে হবে?"),
        Words(
            "First ids, then vectors, then blocks; scores of tokens come last but one.",
            "আগে নম্বর, তারপর ভেক্টর, তারপর ব্লক; টোকেনের স্কোর শেষের ঠিক আগে।",
        ),
    ),
    "A4": (
        Words(
            "Four matrices: Q, K, V, and the one that mixes what the heads found.",
            "চারটি ম্যাট্রিক্স: Q, K, V আর হেডগুলোর ফল মেশানোর ম্যাট্রিক্স।",
        ),
        Words("Each is as wide as the model, and as long.", "প্রতিটির সারি আর কলাম দুই-ই মডেলের প্রস্থের সমান।"),
    ),
}

_WHERE = {
    "products": Words(
        "Each number is a row of Q with a row of K, which is a column of Kᵀ.",
        "প্রতিটি সংখ্যা Q-এর একটি সারি আর K-এর একটি সারি থেকে আসে; K-এর সারিই Kᵀ-এর কলাম।",
    ),
    "scores": Words("Every product over the same root.", "প্রতিটি গুণফলকে একই বর্গমূল দিয়ে ভাগ করুন।"),
    "masked": Words(
        "Where the mask has a 1 the score stays; where it has a 0 comes −∞.",
        "মাস্কে ১ থাকলে স্কোর যেমন ছিল তেমন থাকে; ০ থাকলে বসে −∞।",
    ),
    "weights": Words(
        "e to each score, hidden ones 0; then each over their sum. What must the row sum to?",
        "প্রতিটি স্কোর e-এর ঘাতে তুলুন, মাস্ক-করা ঘরে ০; তারপর প্রতিটিকে যোগফল দিয়ে ভাগ করুন। সারিটির যোগফল কত হওয়ার কথা?",
    ),
}
_PAIRS = Words(
    "Each number is a row of {left} with a column of {right}: multiply pair by pair, then add up.",
    "প্রতিটি সংখ্যা {left}-এর একটি সারি আর {right}-এর একটি কলাম থেকে আসে: জোড়ায় জোড়ায় গুণ করুন, তারপর যোগ করুন।",
)
_BEGIN = Words("It begins so: {line}", "শুরুটি এমন: {line}")
_WORKED = Words("One cell, worked out: {line}", "একটি ঘরের পুরো হিসাব: {line}")


def hints_of_step(sheet: Sheet, step: SheetStep, row: int | None = None) -> tuple[Words, ...]:
    """Where to look, how the first cell begins, and the last cell worked out; of a softmax, the sum below it."""
    assert step.operation is not None, f"{step.name} is given"
    left, *more = step.operation.operands
    where = _WHERE.get(step.name) or _PAIRS.fill(left=left, right=more[0])
    if row is not None:
        first = arithmetic(sheet, sheet.steps["powers"], row, 0, _DECIMALS)
        last = arithmetic(sheet, sheet.steps["sums"], row, 0, _DECIMALS)
    else:
        height, width = step.values.shape
        first = arithmetic(sheet, step, 0, 0, _DECIMALS).rpartition(" = ")[0]
        last = arithmetic(sheet, step, height - 1, width - 1, _DECIMALS)
    return where, _BEGIN.fill(line=first), _WORKED.fill(line=last)
