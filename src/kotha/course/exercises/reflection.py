"""Questions 11 and 12: why several heads, and the whole in view. Open, but for one shape and one flowchart."""

from collections.abc import Iterator
from dataclasses import replace

from kotha.course.exercises.grading import shape
from kotha.course.exercises.ordering import shuffled
from kotha.course.exercises.setting import Question, Setting
from kotha.i18n.wording import Words


def reflection_questions(setting: Setting) -> Iterator[Question]:
    """The last questions, in order."""
    joined = shape(*(setting.sizes[name] for name in ("batch", "length", "joined")))
    for number, text, answer, expected in (
        ("11a", _ADVANTAGE, _PARALLEL, None),
        ("11b", _SPECULATE, _KINDS, None),
        ("11c", _JOIN, _JOINED, joined),
        ("12a", _DRAW, _FLOW, None),
        ("12b", _GENERALISE, _TECHNIQUES, None),
        ("12c", _COMPARE, _SMALL, None),
    ):
        asked = setting.ask(number, text.en, text.bn, answer, expected=expected)
        yield replace(asked, order=shuffled(_pieces(setting), setting.seed or 0)) if number == "12a" else asked


def _pieces(setting: Setting) -> tuple[Words, ...]:
    """The stations of a text on its way through the model, in order."""
    before = setting.config.norm_order == "pre"
    pieces = [
        _CUT,
        _LOOK_UP,
        *([_PLACES] if setting.config.positions in ("learned", "sinusoidal") else []),
        _LOOK_AROUND,
        _THINK,
        _REPEAT,
        *([_LAST_NORM] if before else []),
        _SCORE,
        _SHARE,
    ]
    return tuple(piece.fill(**setting.sizes, others=setting.config.n_layers - 1) for piece in pieces)


_CUT = Words("the tokenizer: text → T token ids, (1, T)", "টোকেনাইজার: লেখা → T-টি টোকেন-নম্বর, (1, T)")
_LOOK_UP = Words(
    "embedding: each id becomes a vector, (1, T, {width})", "এমবেডিং: প্রতিটি নম্বর হয় একটি ভেক্টর, (1, T, {width})"
)
_PLACES = Words("positions are added to it, (1, T, {width})", "তার সঙ্গে অবস্থান যোগ হয়, (1, T, {width})")
_LOOK_AROUND = Words(
    "the first block's attention: {heads} heads look back, and what they find is added, (1, T, {width})",
    "প্রথম ব্লকের অ্যাটেনশন: {heads}টি হেড পেছনে তাকায়, যা পায় তা যোগ হয়, (1, T, {width})",
)
_THINK = Words(
    "the first block's MLP: {width} → {inner} → {width}, and its result is added",
    "প্রথম ব্লকের MLP: {width} → {inner} → {width}, ফলটি যোগ হয়",
)
_REPEAT = Words("the other {others} blocks, (1, T, {width})", "বাকি {others}টি ব্লক, (1, T, {width})")
_LAST_NORM = Words("the last norm, (1, T, {width})", "শেষ নর্ম, (1, T, {width})")
_SCORE = Words(
    "the head: a score for each token of the vocabulary, (1, T, {vocabulary})",
    "শেষ প্রজেকশন: শব্দভান্ডারের প্রতিটি টোকেনের একটি স্কোর, (1, T, {vocabulary})",
)
_SHARE = Words("softmax of the last row: {vocabulary:,} probabilities", "শেষ সারির সফটম্যাক্স: {vocabulary:,}টি সম্ভাবনা")

_ADVANTAGE = Words(
    "What is the advantage of {heads} heads of width {d_head} over one head of width {joined}?",
    "{joined} প্রস্থের একটি হেডের বদলে {d_head} প্রস্থের {heads}টি হেডের সুবিধা কী?",
)
_PARALLEL = Words(
    "The products cost the same, and all heads are computed side by side as one batched product. But one head has "
    "one softmax, so one way to look; {heads} heads look in {heads} ways at once.",
    "গুণের খরচ একই, আর সব হেড পাশাপাশি একসঙ্গে হিসাব করা যায়। কিন্তু একটি হেডের সফটম্যাক্স একটিই, অর্থাৎ তাকানোর ধরনও "
    "একটি; {heads}টি হেড একসঙ্গে {heads} রকমে তাকায়।",
)
_SPECULATE = Words(
    "What might different heads learn in Bangla text, and why is that useful?",
    "বাংলা লেখায় আলাদা আলাদা হেড কী কী শিখতে পারে, আর তাতে লাভ কী?",
)
_KINDS = Words(
    "One may look at the token before, which joins a word's pieces and endings; one from the verb at the end back "
    "to its subject; one at an earlier mention of the same name; one at marks such as the দাঁড়ি. Each is a "
    "different clue to the next word. `kotha inside heads` shows what yours do.",
    "একটি আগের টোকেনের দিকে তাকাতে পারে, যা শব্দের টুকরা আর বিভক্তি জোড়ে; একটি বাক্যের শেষের ক্রিয়া থেকে কর্তার "
    "দিকে; একটি একই নামের আগের উল্লেখে; একটি দাঁড়ির মতো চিহ্নে। প্রতিটিই পরের শব্দের আলাদা সূত্র। আপনার মডেলের হেড "
    "কী করে, তা দেখায় `kotha inside heads`।",
)
_JOIN = Words(
    "{heads} outputs of shape ({batch}, {length}, {d_head}) are put side by side. What shape is that?",
    "({batch}, {length}, {d_head}) আকারের {heads}টি আউটপুট পাশাপাশি বসানো হলো। আকার কত হলো?",
)
_JOINED = Words(
    "concat along the last axis: {heads} × {d_head} = {joined}, so ({batch}, {length}, {joined}); then the output "
    "matrix ({joined} × {width}) mixes what the heads found.",
    "শেষ অক্ষ বরাবর জোড়া: {heads} × {d_head} = {joined}, অর্থাৎ ({batch}, {length}, {joined}); তারপর আউটপুট "
    "ম্যাট্রিক্স ({joined} × {width}) হেডগুলো যা পেল তা মেশায়।",
)
_DRAW = Words(
    "How does “বাংলাদেশ ব্যাংক সুদ বৃদ্ধি” flow from text to probabilities? Type the numbers of the pieces in order.",
    "“বাংলাদেশ ব্যাংক সুদ বৃদ্ধি” লেখা থেকে সম্ভাবনা পর্যন্ত কীভাবে যায়? ধাপগুলোর নম্বর পরপর লিখুন।",
)
_FLOW = Words(
    "text → T token ids (1, T) → embedding and positions (1, T, {width}) → {layers} blocks, each (1, T, {width}) in "
    "and out → last norm (1, T, {width}) → head: logits (1, T, {vocabulary}) → softmax of the last row: "
    "{vocabulary:,} probabilities. `kotha inside flow` draws it for your model.",
    "লেখা → T-টি টোকেন-নম্বর (1, T) → এমবেডিং ও অবস্থান (1, T, {width}) → {layers}টি ব্লক, প্রতিটিতে (1, T, "
    "{width}) ঢোকে ও বেরোয় → শেষ নর্ম (1, T, {width}) → শেষ প্রজেকশন: লজিট (1, T, {vocabulary}) → শেষ সারির সফটম্যাক্স: "
    "{vocabulary:,}টি সম্ভাবনা। আপনার মডেলের জন্য এটি আঁকে `kotha inside flow`।",
)
_GENERALISE = Words(
    "Validation loss stands at 4.08–4.13 while training loss falls. Propose three techniques, and say why each helps.",
    "যাচাইয়ের লস ৪.০৮–৪.১৩-এ থেমে আছে, অথচ প্রশিক্ষণের লস নামছে। তিনটি কৌশল বলুন, আর কেন কাজে দেবে বলুন।",
)
# Measured here (docs/experiments.md, question 12b), in bits a byte.
_TECHNIQUES = Words(
    "Stopping at the best validation loss: less time to memorise. On the course's model that was worth 0.107 bits a "
    "byte here, and 0.014 more with a learning rate that has come down by then. More text: there is less to "
    "learn by heart and more to find in common; half of it cost 0.071. Dropout: no single neuron can carry a memory; "
    "the model's 0.2 was the best of five, and none at all cost 0.025. Weight decay, label smoothing and an average "
    "of the weights (EMA) gained about 0.001 or less. Fewer layers or a smaller vocabulary made it worse.",
    "যাচাইয়ের লস সবচেয়ে কম হলেই থামা: মুখস্থ করার সময় কমে। কোর্সের মডেলে মেপে এতে প্রতি বাইটে ০.১০৭ বিট লাভ হয়েছে; "
    "ততক্ষণে শেখার হার নেমে এলে আরও ০.০১৪। আরও লেখা: মুখস্থ করা কঠিন হয়, মডেলকে ভাষার নিয়ম শিখতে হয়; অর্ধেক লেখায় "
    "০.০৭১ বিট ক্ষতি। ড্রপআউট: কোনো একটি নিউরন বা বড় ওজনের ভরসায় মুখস্থ করা চলে না; পাঁচটি মানের মধ্যে মডেলের ০.২-ই "
    "সবচেয়ে ভালো, একেবারে না থাকলে ০.০২৫ বিট ক্ষতি। ওজন-ক্ষয়, label smoothing আর ওজনের চলমান গড়ে (EMA) লাভ ০.০০১-এর "
    "মতো বা তারও কম। কম স্তর বা ছোট শব্দভান্ডারে ফল খারাপ হয়েছে।",
)
_COMPARE = Words(
    "Compare a model of this size with one of a trillion parameters, for Bangla.",
    "বাংলার জন্য এই মাপের মডেলকে এক লাখ কোটি প্যারামিটারের মডেলের সঙ্গে তুলনা করুন।",
)
_SMALL = Words(
    "For it: it runs and trains on one small machine, its words are cut for Bangla, its text is known, it can be "
    "opened and changed, and nothing leaves the house. Against it: little knowledge of the world, short context, "
    "weak reasoning, and it learns its few megabytes by heart.",
    "পক্ষে: একটি ছোট যন্ত্রেই চলে ও শেখে, শব্দের টুকরা বাংলার জন্যই কাটা, কোন লেখা থেকে শিখেছে তা জানা, খুলে দেখা ও "
    "বদলানো যায়, আর কিছুই বাইরে যায় না। বিপক্ষে: জগতের জ্ঞান অল্প, প্রসঙ্গ ছোট, যুক্তি দুর্বল, আর অল্প কয়েক "
    "মেগাবাইট লেখা মডেলটি মুখস্থ করে ফেলে।",
)
