"""The six questions that the course ends with, as a set of their own: five in one's own words, and one count."""

from collections.abc import Iterator

from kotha.course.exercises.grading import Expected
from kotha.course.exercises.setting import Question, Setting
from kotha.i18n.wording import Words
from kotha.model.parameters import count_parameters

# The course gives no points; so each weighs the same.
POINTS = dict.fromkeys(range(1, 7), 10)


def assessment_questions(setting: Setting) -> Iterator[Question]:
    """The six, in the course's order."""
    for id, asked, answer in (
        ("A1", _POSITIONS, _ORDER_UNSEEN),
        ("A2", _KINDS, _BOTH_WAYS),
        ("A3", _NO_MASK, _CHEATS),
    ):
        yield setting.ask(id, asked.en, asked.bn, answer)
    yield _parameters(setting)
    for id, asked, answer in (("A5", _HEADS, _MANY_WAYS), ("A6", _RESIDUAL, _ROAD)):
        yield setting.ask(id, asked.en, asked.bn, answer)


def _parameters(setting: Setting) -> Question:
    counted, width = count_parameters(setting.config).attention_per_layer, setting.config.d_model
    bare = 4 * width * width
    # Where keys are shared by heads there are fewer, and the formula is another.
    line = f"4 × {width} × {width} = {bare:,}"
    rest = "" if counted == bare else f"; in this model {counted:,}"
    return setting.ask(
        "A4",
        "Width {width}, {heads} heads. How many parameters are in the attention of one layer?",
        "প্রস্থ {width}, হেড {heads}টি। একটি স্তরের অ্যাটেনশনে কতটি প্যারামিটার?",
        line + rest,
        expected=Expected((float(counted),), others=((float(bare),),) if counted > bare else ()),
    )


_POSITIONS = Words("Why does a transformer need positional embeddings?", "ট্রান্সফরমারে অবস্থান-এমবেডিং কেন লাগে?")
_ORDER_UNSEEN = Words(
    "Attention compares every token with every other and sums what it finds: shuffle the tokens, and the same sums "
    "come out, only shuffled. So the order of the words is lost, unless the position is put into the vectors. In "
    "“রহিম করিমকে দেখল” and “করিম রহিমকে দেখল” meaning depends on order.",
    "অ্যাটেনশন প্রতিটি টোকেনকে অন্য সব টোকেনের সঙ্গে মেলায়, তারপর যোগ করে। টোকেনগুলো এলোমেলো করলেও একই যোগফল আসে, শুধু "
    "জায়গা বদলে। তাই অবস্থান ভেক্টরে না বসালে শব্দের ক্রম হারিয়ে যায়। “রহিম করিমকে দেখল” আর “করিম রহিমকে দেখল”: অর্থ "
    "ক্রমের ওপরই নির্ভর করে।",
)
_KINDS = Words(
    "What is the difference between an encoder and a decoder-only model?",
    "এনকোডার আর শুধু-ডিকোডার মডেলের পার্থক্য কী?",
)
_BOTH_WAYS = Words(
    "An encoder (BERT) sees both sides of a token, left and right; it learns by filling in hidden words, and is good "
    "at understanding: classes, search. A decoder-only model (GPT) has a causal mask, sees only what came before, "
    "learns to predict the next token, and can therefore write.",
    "এনকোডার (BERT) টোকেনের দুই দিকই দেখে, আগেও পরেও; মাস্ক-করা শব্দ পূরণ করে শেখে, আর লেখা বোঝার কাজে ভালো: শ্রেণি "
    "নির্ণয়, খোঁজা। শুধু-ডিকোডার মডেলে (GPT) ভবিষ্যৎ-আড়াল মাস্ক থাকে, তাই শুধু আগের টোকেন দেখে; পরের টোকেন অনুমান করতে শেখে, "
    "তাই লিখতে পারে।",
)
_NO_MASK = Words(
    "What would happen if the causal mask were removed from the model?",
    "মডেল থেকে ভবিষ্যৎ-আড়াল মাস্ক (causal mask) তুলে নিলে কী হবে?",
)
_CHEATS = Words(
    "In training each token could see the very next one, which it is to predict: it cheats by copying, and the "
    "training loss falls almost to nothing. When it writes there is no later token to see, so it has learned nothing "
    "of use and the text breaks down.",
    "প্রশিক্ষণের সময় প্রতিটি টোকেন পরের টোকেনটিই দেখে ফেলে, অথচ সেটিই তার অনুমান করার কথা: মডেল নকল করে, আর প্রশিক্ষণের লস "
    "প্রায় শূন্যে নামে। লেখার সময় পরের টোকেন থাকে না, তাই যা শিখেছে তা কাজে আসে না, লেখা ভেঙে পড়ে।",
)
_HEADS = Words("Why several attention heads instead of one large head?", "একটি বড় হেডের বদলে কয়েকটি অ্যাটেনশন হেড কেন?")
_MANY_WAYS = Words(
    "One head has one softmax, so one pattern of attention for each token: it averages over all that it wants to "
    "know. Several heads look for different relations at once, say the subject and the word before, each in a "
    "subspace of its own, and W_O mixes what they find. The cost is the same, since each is narrower.",
    "একটি হেডে সফটম্যাক্স একটিই, তাই প্রতি টোকেনে তাকানোর ধরনও একটি: যা যা জানতে চায়, সবের গড় হয়ে যায়। কয়েকটি হেড "
    "একসঙ্গে আলাদা আলাদা সম্পর্ক খোঁজে, যেমন কর্তা আর আগের শব্দ; প্রতিটি নিজের ছোট জায়গায় কাজ করে, আর W_O সব মেশায়। প্রতিটি "
    "হেড সরু, তাই মোট খরচ একই।",
)
_RESIDUAL = Words(
    "What are the residual connections in a transformer block for?", "ট্রান্সফরমার ব্লকে রেসিডুয়াল সংযোগ কী কাজে লাগে?"
)
_ROAD = Words(
    "What enters a part is added to what comes out. So gradients flow back through the sums without vanishing, and "
    "deep stacks can be trained; the original information is kept, and a block only has to learn what to change.",
    "ব্লকে যা ঢোকে তা ফলের সঙ্গে যোগ হয়। ফলে গ্রেডিয়েন্ট যোগের ভেতর দিয়ে সোজা ফিরে আসে, মিলিয়ে যায় না, তাই অনেক স্তরের "
    "মডেলও শেখানো যায়। আগের তথ্যও হারায় না; ব্লককে শুধু শিখতে হয় কী বদলাতে হবে।",
)
