"""What several tests of text share: an alphabet made to break things, a small corpus, a tokenizer of every kind."""

import socket
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import strategies as st

from kotha.text.akshara import aksharas
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.trainers import train

# Fragments rather than code points where a rule needs several side by side.
ADVERSARIAL = [
    *"কতযবরডঢয়ড়ষহঅএআ",
    *"ািীুেৈোৌৗৃ",
    *"়়্্ঁঁংঃৎ",
    *"\u200c\u200d\u200c\u200d\ufeff\u200b\u00ad\u2060",
    *"\u00a0\u2009\u2028\u0085\r\n\t \x00\x1f",
    "\r\n",
    *"।৷|০৫09aZe'\"‘”",
    *"\u0301\u0308\u0323é",
    *"👩👧❤\ufe0f\U0001f3fd🇧🇩",
    *"क\u094dष\u093cامی\u064e\u1100\u1161\u11a8",
    "র\u200d্যা",
    "ত্\u200d",
    "<|endoftext|>",
    "<0x41>",
    "[SEP]",
    "\u2581",
    "Ġ",
    "##",
    "\ufffd",
]

# The kinds of tokenizer under contract: how each is trained.
KINDS: dict[str, dict[str, Any]] = {
    "char-codepoint": {"kind": "char", "level": "codepoint"},
    "char-akshara": {"kind": "char", "level": "akshara"},
    "bpe-qwen35": {"kind": "bpe", "split": "qwen35"},
    "bpe-words": {"kind": "bpe", "split": "words"},
    "unigram": {"kind": "unigram"},
    "wordpiece": {"kind": "wordpiece"},
}
VOCAB_SIZE = 900

SENTENCES = """
ভোরের আলো ফুটতেই পাখিরা গান ধরে।
নদীর ঘাটে নৌকা বাঁধা আছে।
মা রান্নাঘরে পিঠা বানাচ্ছেন।
আজ স্কুলে বিজ্ঞান মেলার উদ্বোধন হবে।
ছোট ভাইটি ক্ষুধার্ত হয়ে কাঁদছে।
বৃষ্টির দিনে খিচুড়ি খেতে ভালো লাগে।
রাষ্ট্রপতি শিক্ষার্থীদের হাতে পুরস্কার তুলে দিলেন।
তাঁর চোখে স্বপ্ন, মুখে হাসি।
গ্রামের পথে ধুলো উড়িয়ে গরুর গাড়ি চলে।
আমরা সন্ধ্যায় ছাদে বসে তারা দেখি।
বাজারে মাছের দাম ৩৫০ টাকা কেজি।
র‍্যাব অভিযান চালিয়ে দুজনকে আটক করেছে।
স্বাধীনতা দিবসের র‍্যালিতে হাজার মানুষ অংশ নেয়।
নতুন বছর উদ্‌যাপন করতে সবাই রাস্তায় নেমেছে।
অ্যাপটি নামাতে অ্যাকাউন্ট খুলতে হয়।
কৃষ্ণচূড়ার লালে ঢাকা পড়েছে পুরো সড়ক।
লক্ষ্মী মেয়েটি প্রতিদিন পড়তে বসে।
বিদ্যুৎ চলে গেলে আমরা মোমবাতি জ্বালাই।
দাদু পুরোনো দিনের গল্প বলতে ভালোবাসেন।
১৯৭১ সালের কথা তিনি ভুলতে পারেন না।
ট্রেনটি ঠিক সময়ে স্টেশনে পৌঁছাল।
কবি লিখেছেন, "মানুষ মানুষের জন্য"।
ঢাকা শহরের যানজটে সময় নষ্ট হয়।
শীতের সকালে খেজুরের রস খুব মিষ্টি।
মাঠে ছেলেরা ক্রিকেট খেলছে, মেয়েরা দৌড়াচ্ছে।
পাহাড়ের চূড়া থেকে সমুদ্র দেখা যায়।
ডাক্তার বললেন, প্রচুর পানি খেতে হবে।
তুমি কি আমার বইটা দেখেছ?
না, আমি তো কাল থেকে বাড়িতেই নেই!
আকাশে মেঘ জমেছে, হয়তো ঝড় উঠবে।
চাঁদের আলোয় নদীটি রুপালি হয়ে উঠল।
শিক্ষক ব্ল্যাকবোর্ডে একটি অঙ্ক লিখলেন।
সংবাদপত্রে আজকের তাপমাত্রা ৩২ ডিগ্রি লেখা আছে।
বন্ধুরা মিলে একটি নাটক মঞ্চস্থ করলাম।
হঠাৎ দরজায় কে যেন কড়া নাড়ল।
জ্ঞান অর্জনের কোনো শেষ নেই।
উজ্জ্বল রোদে ধান শুকাতে দিয়েছে চাষিরা।
মন্ত্রী বলেছেন, প্রকল্পটি আগামী বছর শেষ হবে।
বাঘ আর হরিণ একই বনে থাকে।
আমার সোনার হরিণ কোথায় হারিয়ে গেল?
ঈদের দিনে সেমাই আর পায়েস রান্না হয়।
গাছের ডালে বসে কাক ডাকছে কা কা।
ইন্টারনেটে খুঁজলে অনেক তথ্য পাওয়া যায়।
প্রশ্নের উত্তর দিতে পেরে সে খুব খুশি।
বড় আপা ব্যাংকে চাকরি করেন।
দুঃখের দিনে বন্ধু চেনা যায়।
কম্পিউটারে বাংলা লেখা এখন খুব সহজ।
ছবি আঁকতে তার রং-তুলি চাই।
ঘুড়ি উড়ছে নীল আকাশের বুকে।
পরীক্ষার ফল বেরোবে ১৫ তারিখে।
নানির হাতের আচার কখনো ভোলা যায় না।
ফুটবল খেলায় আমাদের দল ২-১ গোলে জিতেছে।
অন্ধকার রাতে জোনাকি পোকা মিটমিট করে জ্বলে।
তিনি ইংরেজিতে বললেন: good morning, my friend.
বইমেলায় প্রতিদিন নতুন বই আসছে।
সমুদ্রের ঢেউ বালিতে এসে ভেঙে পড়ে।
পিঁপড়েরা সারি বেঁধে চলেছে খাবারের খোঁজে।
ইতিহাস আমাদের অনেক কিছু শেখায়।
কাঁঠাল আমাদের জাতীয় ফল, শাপলা জাতীয় ফুল।
গল্পটি এখানেই শেষ হলো।
""".strip().split("\n")


@cache
def train_kind(name: str, **changes: Any) -> Tokenizer:
    """A tokenizer of a kind, trained once for all tests."""
    return train(CORPUS, **{"vocab_size": VOCAB_SIZE, **KINDS[name], **changes})


# Sentences alone, in pairs across a line, and often enough that words are learned.
CORPUS = [*SENTENCES * 4, *(f"{first}\n{second}" for first, second in zip(SENTENCES, SENTENCES[7:], strict=False))]


def assigned_text(**limits: Any) -> st.SearchStrategy[str]:
    """Arbitrary text of the code points that this Python's Unicode assigns.

    Python, `regex`, ICU and the Rust crates each carry a Unicode version of their own; on a code point that one of them
    does not know yet, the older takes it for unassigned and they rightly differ. Surrogates are no text.
    """
    return st.text(st.characters(exclude_categories=["Cs", "Cn"]), **limits)


def adversarial_text(max_size: int = 14) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(ADVERSARIAL), max_size=max_size).map("".join)


def anything() -> st.SearchStrategy[str]:
    """Both alphabets: what one does not find, the other may."""
    return assigned_text() | adversarial_text()


trained = train_kind


@pytest.fixture(params=KINDS)
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    """A tokenizer of every kind in turn."""
    return trained(request.param)


def boundaries(text: str) -> Iterator[int]:
    """Where one letter ends and the next begins, the end of the text included."""
    return accumulate(map(len, aksharas(text)))


@pytest.fixture
def listener() -> Iterator[int]:
    """The port of one who listens and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def free_port() -> int:
    """A port at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]
