"""Partly right and wrong answers to the open questions; the model answers serve as right answers."""

# In each language: an answer that mentions some of the expected things, and one that mentions none.
OPEN = {
    "3b-why": {
        "en": ("Because softmax makes it 0.", "To save memory."),
        "bn": ("কারণ সফটম্যাক্সে সেটি শূন্য হয়।", "মেমরি বাঁচাতে।"),
    },
    "6c-trace": {
        "en": ("The MLP makes it wider, the norm does nothing.", "It grows by one in each layer."),
        "bn": ("MLP চওড়া করে, নর্ম কিছু করে না।", "প্রতি স্তরে এক করে বাড়ে।"),
    },
    "6d-why": {
        "en": ("A score for the next letter.", "How many times it was read."),
        "bn": ("পরের বর্ণের স্কোর।", "কতবার পড়া হয়েছে।"),
    },
    "7a": {"en": ("log of p", "the difference of two ids"), "bn": ("সম্ভাবনার লগ", "দুটি নম্বরের গুণফল")},
    "7b": {"en": ("The gap is large.", "It is underfitting."), "bn": ("দুটির ফারাক অনেক।", "এটি আন্ডারফিটিং।")},
    "8a": {
        "en": ("The tokenizer makes ids, and temperature 2.0 is random.", "A person types it in."),
        "bn": ("টোকেনাইজার নম্বর দেয়, আর ২.০ হলে লেখা এলোমেলো।", "একজন মানুষ লিখে দেন।"),
    },
    "9a-why": {"en": ("They are nearly the same.", "Nothing."), "bn": ("দুটি প্রায় সমান।", "কিছুই না।")},
    "10b-parts": {
        "en": ("Gradients and Adam.", "The screen and the keyboard."),
        "bn": ("গ্রেডিয়েন্ট আর Adam।", "পর্দা আর কিবোর্ড।"),
    },
    "11a": {
        "en": ("They run in parallel.", "There are fewer parameters."),
        "bn": ("সব হেড একসঙ্গে চলে।", "প্যারামিটার কম লাগে।"),
    },
    "11b": {"en": ("One finds the verb.", "All of them do nothing."), "bn": ("একটি ক্রিয়া খোঁজে।", "সবাই চুপ।")},
    "12b": {
        "en": ("Dropout and early stopping.", "Train it longer."),
        "bn": ("ড্রপআউট আর আগেভাগে থামা।", "আরও অনেকক্ষণ শেখানো।"),
    },
    "12c": {
        "en": ("It is cheap, but it has little knowledge.", "They are equal."),
        "bn": ("এটি সস্তা, কিন্তু জ্ঞান অল্প।", "দুটি সমান।"),
    },
    "A1": {
        "en": ("It needs the order of words.", "To make training quicker."),
        "bn": ("শব্দের ক্রম জানতে।", "প্রশিক্ষণ তাড়াতাড়ি করতে।"),
    },
    "A2": {
        "en": ("An encoder sees both sides.", "The encoder is larger."),
        "bn": ("এনকোডার দুই দিক দেখে।", "এনকোডার বড়।"),
    },
    "A3": {
        "en": ("It could see the next token.", "It would have more layers."),
        "bn": ("পরের টোকেন দেখা যেত।", "স্তর বেড়ে যেত।"),
    },
    "A5": {
        "en": ("Heads find different things.", "It has fewer parameters."),
        "bn": ("হেডগুলো আলাদা জিনিস খোঁজে।", "প্যারামিটার কম লাগে।"),
    },
    "A6": {
        "en": ("Gradients flow through it.", "It makes the model smaller."),
        "bn": ("গ্রেডিয়েন্ট এর ভেতর দিয়ে যায়।", "মডেল ছোট হয়।"),
    },
}
