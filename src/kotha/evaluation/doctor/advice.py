"""What the doctor says, in English and in Bangla: for each kind of finding what was seen, and what to try.

Numbers are filled in from the evidence, in Bangla with Bangla digits; names of settings stay as they are typed.
"""

import re
from collections.abc import Mapping

from kotha.i18n.numbers import LANGUAGES, Language
from kotha.i18n.wording import fill

Symptoms = dict[str, float | int | str]

# What was seen, and below it what to try, line by line.
ADVICE: dict[str, dict[str, str]] = {
    "empty": {
        "en": """Nothing has been logged yet, so there is no curve to read.
            - Let it reach its first evaluation.""",
        "bn": """এখনো কিছু লেখা হয়নি, তাই দেখার মতো কোনো রেখা নেই।
            - প্রথম মূল্যায়ন পর্যন্ত চলতে দিন।""",
    },
    "not-a-number": {
        "en": """At step {step:,} the loss was no longer a number: the weights have burst.
            - A lower learning_rate; the highest was {rate:g}.
            - A longer warm-up, and gradient_clip=1.0.
            - precision=bfloat16 or float32 instead of float16.""",
        "bn": """ধাপ {step:,}-এ লস আর কোনো সংখ্যা ছিল না: ওজনগুলো ফেটে গেছে।
            - learning_rate কমান; সর্বোচ্চ ছিল {rate:g}।
            - ওয়ার্ম-আপ লম্বা করুন, আর gradient_clip=1.0 দিন।
            - float16-এর বদলে precision=bfloat16 বা float32 নিন।""",
    },
    "learning-rate-too-high": {
        "en": """The training loss had come to {low:.2f} nats and rose to {high:.2f} by step {step:,}: the steps are
            too large and jump over what they look for.
            - A third of the learning_rate; the highest was {rate:g}.
            - A longer warm-up.
            - gradient_clip=1.0.""",
        "bn": """প্রশিক্ষণের লস {low:.2f} ন্যাটে নেমেছিল, ধাপ {step:,}-এ বেড়ে {high:.2f} হয়েছে: পদক্ষেপগুলো এত বড় যে লক্ষ্য
            ডিঙিয়ে যাচ্ছে।
            - learning_rate তিন ভাগের এক ভাগ করুন; সর্বোচ্চ ছিল {rate:g}।
            - ওয়ার্ম-আপ লম্বা করুন।
            - gradient_clip=1.0 দিন।""",
    },
    "untrained": {
        "en": """After {steps:,} steps the loss is {loss:.2f} nats, near ln V = {nothing:.2f}, which is guessing
            blindly: the model has hardly learned anything.
            - More steps.
            - A higher learning_rate, if the curve falls slowly from the start.""",
        "bn": """{steps:,} ধাপের পরেও লস {loss:.2f} ন্যাট, ln V = {nothing:.2f}-এর কাছাকাছি, যা চোখ বুজে আন্দাজের সমান:
            মডেল প্রায় কিছুই শেখেনি।
            - আরও ধাপ চালান।
            - রেখা শুরু থেকেই ধীরে নামলে learning_rate বাড়ান।""",
    },
    "read-too-little": {
        "en": """On unseen text the loss is {loss:.2f} nats, and mere counting ({name}) gives {counted:.2f}: in
            {steps:,} steps it has read only {share:.0f} % of its text, and who counts has read all of it.
            - More steps, or more minutes: nothing else is worth trying before.
            - A higher learning_rate, if the curve falls slowly from the start.""",
        "bn": """না-দেখা লেখায় লস {loss:.2f} ন্যাট, আর শুধু গুনে ({name}) পাওয়া যায় {counted:.2f}: {steps:,} ধাপে মডেল লেখার
            মাত্র {share:.0f} % পড়েছে, আর যে গোনে সে পড়েছে সবটা।
            - আরও ধাপ চালান, বা আরও সময় দিন: তার আগে অন্য কিছু করে লাভ নেই।
            - রেখা শুরু থেকেই ধীরে নামলে learning_rate বাড়ান।""",
    },
    "no-better-than-counting": {
        "en": """On unseen text the loss is {loss:.2f} nats, and mere counting ({name}) gives {counted:.2f}: the model
            is no better than a table of counts.
            - More steps, or a higher learning_rate.
            - A larger model, or a longer context.
            - More text.""",
        "bn": """না-দেখা লেখায় লস {loss:.2f} ন্যাট, আর শুধু গুনে ({name}) পাওয়া যায় {counted:.2f}: মডেলটি গণনার তালিকার
            চেয়ে ভালো নয়।
            - আরও ধাপ চালান, বা learning_rate বাড়ান।
            - বড় মডেল বা দীর্ঘ প্রসঙ্গ (context) নিন।
            - আরও লেখা জোগাড় করুন।""",
    },
    "memorising": {
        "en": """Since step {step:,} it learns its training text by heart: until step {last_step:,} the training loss
            fell from {training:.2f} to {last_training:.2f}, and on unseen text it went from {validation:.2f} to
            {last_validation:.2f}.
            - More text: nothing helps as much.
            - More dropout or weight_decay.
            - A smaller model.
            - Fewer steps, or patience=5; the weights of the best step are kept in any case.""",
        "bn": """ধাপ {step:,} থেকে মডেল প্রশিক্ষণের লেখা মুখস্থ করছে: ধাপ {last_step:,} পর্যন্ত প্রশিক্ষণের লস {training:.2f}
            থেকে {last_training:.2f}-এ নেমেছে, অথচ না-দেখা লেখায় তা {validation:.2f} থেকে {last_validation:.2f} হয়েছে।
            - আরও লেখা: এর মতো উপকার আর কিছুতে হয় না।
            - dropout বা weight_decay বাড়ান।
            - ছোট মডেল নিন।
            - কম ধাপ চালান, বা patience=5 দিন; সেরা ধাপের ওজন এমনিতেই রাখা থাকে।""",
    },
    "plateau": {
        "en": """It has stood still since step {step:,}: the loss on unseen text was {validation:.2f} nats there and
            is {last:.2f} at step {last_step:,}, and the training loss falls no more either.
            - A larger model, if this one is small for its text.
            - A higher learning_rate (the highest was {rate:g}), or one that decays towards the end.
            - Stopping here: more of the same brings nothing.""",
        "bn": """ধাপ {step:,} থেকে আর এগোচ্ছে না: না-দেখা লেখায় লস তখন ছিল {validation:.2f} ন্যাট, ধাপ {last_step:,}-এ
            {last:.2f}; প্রশিক্ষণের লসও আর নামছে না।
            - লেখার তুলনায় মডেল ছোট হলে বড় মডেল নিন।
            - learning_rate বাড়ান (সর্বোচ্চ ছিল {rate:g}), বা শেষের দিকে কমতে দিন।
            - এখানেই থামুন: একইভাবে চালিয়ে লাভ নেই।""",
    },
    "leak": {
        "en": """The text was read {epochs:.1f} times, and still unseen text is foretold better ({validation:.2f}
            nats) than training text ({training:.2f}). Is the validation text really unseen?
            - `kotha prepare` anew, with leaks kept out.
            - A validation file from another source.""",
        "bn": """লেখাটি {epochs:.1f} বার পড়া হয়েছে, তবু না-দেখা লেখা ({validation:.2f} ন্যাট) প্রশিক্ষণের লেখার
            ({training:.2f}) চেয়ে ভালো আন্দাজ হচ্ছে। যাচাইয়ের লেখা কি সত্যিই না-দেখা?
            - যাচাইয়ের লেখা প্রশিক্ষণে না রেখে আবার `kotha prepare` করুন।
            - অন্য উৎস থেকে যাচাইয়ের ফাইল নিন।""",
    },
    "leak-below-floor": {
        "en": """At step {step:,} it needs {bits:.3f} bits per byte, and the source of this text has an entropy of
            {floor:.3f}: no one can foretell it so well who has not seen it.
            - `kotha prepare` anew, with leaks kept out.
            - A validation file made with another seed.""",
        "bn": """ধাপ {step:,}-এ প্রতি বাইটে {bits:.3f} বিট লাগছে, অথচ এই লেখার উৎসের এনট্রপি {floor:.3f}: আগে না দেখে
            কেউ এত ভালো আন্দাজ করতে পারে না।
            - যাচাইয়ের লেখা প্রশিক্ষণে না রেখে আবার `kotha prepare` করুন।
            - অন্য seed দিয়ে যাচাইয়ের ফাইল বানান।""",
    },
    "leak-copies": {
        "en": """{share:.0f} % of the validation documents stand word for word in the training text: figures on them
            say how well it remembers, not how well it foretells.
            - `kotha prepare` anew; it keeps such documents out of training unless told otherwise.""",
        "bn": """যাচাইয়ের লেখার {share:.0f} % হুবহু প্রশিক্ষণের লেখায় আছে: তার ওপর মাপলে বোঝা যায় কতটা মনে আছে, কতটা আন্দাজ
            করতে পারে তা নয়।
            - আবার `kotha prepare` করুন; না বললে এমন লেখা সে প্রশিক্ষণ থেকে বাদ দেয়।""",
    },
    "mismatch-tokenizer": {
        "en": """A token stands for {letters:.2f} characters of this text, though the vocabulary has {vocabulary:,}
            entries: the tokenizer was made for another script or language.
            - `kotha tokenizer train` on this text, then `kotha prepare` anew.
            - `kotha tokenizer card` shows the fit.""",
        "bn": """শব্দভান্ডারে {vocabulary:,}টি টোকেন থাকলেও এই লেখার প্রতি টোকেনে পড়ে মাত্র {letters:.2f}টি অক্ষর-চিহ্ন:
            টোকেনাইজারটি অন্য লিপি বা ভাষার জন্য বানানো।
            - এই লেখায় `kotha tokenizer train` করে আবার `kotha prepare` করুন।
            - কতটা মানানসই তা দেখায় `kotha tokenizer card`।""",
    },
    "mismatch-unknown": {
        "en": """{share:.1f} % of the validation tokens are unknown to the tokenizer: what they hide is neither
            learned nor measured.
            - A tokenizer with bytes as a way out (bpe, unigram), trained on this text.""",
        "bn": """যাচাইয়ের টোকেনের {share:.1f} % টোকেনাইজারের অচেনা: তাদের আড়ালে যা আছে তা শেখাও হয় না, মাপাও হয় না।
            - এই লেখায় শেখানো এমন টোকেনাইজার নিন যা বাইটে নামতে পারে (bpe, unigram)।""",
    },
    "mismatch-validation": {
        "en": """By step {step:,} no text had been read twice, and yet the loss on unseen text ({validation:.2f} nats)
            was far above that of training ({training:.2f}): the two are texts of different kinds.
            - Drawing the validation documents from the same source: `kotha prepare` draws them by itself.
            - More text of that kind.""",
        "bn": """ধাপ {step:,} পর্যন্ত কোনো লেখা দুবার পড়া হয়নি, তবু না-দেখা লেখায় লস ({validation:.2f} ন্যাট) প্রশিক্ষণের
            লসের ({training:.2f}) চেয়ে অনেক বেশি: দুটি ভিন্ন ধরনের লেখা।
            - একই উৎস থেকে যাচাইয়ের লেখা নিন: `kotha prepare` নিজেই তা বেছে নেয়।
            - ওই ধরনের আরও লেখা জোগাড় করুন।""",
    },
}

HEALTHY = {
    "en": "Nothing alarming: the loss falls, on unseen text too.",
    "bn": "উদ্বেগের কিছু নেই: লস নামছে, না-দেখা লেখাতেও।",
}
COMPARED = {
    "en": "It is below what it was compared with: {names}.",
    "bn": "যেসবের সঙ্গে তুলনা হয়েছে, তা সেগুলোর নিচে: {names}।",
}
UNMEASURED = {
    "en": "Nothing alarming in the training loss; but nothing was measured on unseen text, so its worth is not known.",
    "bn": "প্রশিক্ষণের লসে উদ্বেগের কিছু নেই; না-দেখা লেখায় কিছু মাপা হয়নি, তাই মডেল কতটা শিখেছে তা জানা যায় না।",
}


def reassure(loss: float | None, references: Mapping[str, float], language: Language) -> str:
    """What is said where nothing was found: only what was looked at; ``loss`` is the best on unseen text.

    >>> reassure(3.0, {"ln V": 9.0, "5-gram": 2.5}, "en")
    'Nothing alarming: the loss falls, on unseen text too. It is below what it was compared with: ln V.'
    """
    if loss is None:
        return UNMEASURED[language]
    names = ", ".join(name for name, nats in references.items() if loss < nats)
    return " ".join([HEALTHY[language], *([COMPARED[language].format(names=names)] if names else [])])


def advise(kind: str, evidence: Symptoms) -> tuple[dict[str, str], dict[str, list[str]]]:
    """What was seen, and what to try, both by language."""
    said = {language: split_advice(ADVICE[kind][language]) for language in LANGUAGES}
    seen: dict[str, str] = {language: fill(words, language, evidence) for language, (words, *_) in said.items()}
    return seen, {language: [fill(each, language, evidence) for each in told] for language, (_, *told) in said.items()}


def split_advice(text: str) -> list[str]:
    """What was seen, and then each thing to try, without the line ends of the table.

    >>> split_advice("It stands still since then.\\n - More text.\\n - Fewer steps.")
    ['It stands still since then.', 'More text.', 'Fewer steps.']
    """
    return [" ".join(part.split()) for part in re.split(r"\n *- ", text)]
