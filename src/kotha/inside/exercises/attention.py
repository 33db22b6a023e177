"""Questions 1 to 5: self-attention by hand. Every answer is a step of the sheet."""

from collections.abc import Iterator

from kotha.inside.exercises.grading import Expected
from kotha.inside.exercises.question import Question
from kotha.inside.exercises.setting import Setting
from kotha.inside.worksheet.sheet import Sheet
from kotha.inside.worksheet.shown import arithmetic
from kotha.wording import Words, same

# Whoever carries three decimals along, or 1.414 for a root, stays within this.
_CARRIED = 0.0005
_DECIMALS = 6

_WHY_HIDDEN = Words(
    "Softmax raises e to each score, and e to −∞ is exactly 0: a hidden token gets no weight at all, and the others "
    "still sum to 1. A 0 in its place would not do, since e^0 = 1 is a weight like any other.",
    "সফটম্যাক্সে e-কে প্রতিটি স্কোরের ঘাতে তোলা হয়, আর e-এর −∞ ঘাত ঠিক ০: তাই ঢাকা টোকেন কোনো ওজনই পায় না, "
    "বাকিগুলোর যোগফল তবু ১ থাকে। সেখানে ০ বসালে চলত না, কারণ e^0 = 1, সেটি আর পাঁচটা ওজনের মতোই একটি ওজন।",
)


def attention_questions(setting: Setting) -> Iterator[Question]:
    """The questions about one head, in order."""
    sheet = setting.sheet
    n_tokens, d_head = sheet.steps["K"].values.shape
    size = {"rows": n_tokens, "columns": d_head}
    for letter in "QKV":
        text = Words(
            "Compute {0} = X × W_{0}: {rows} rows of {columns} numbers. Type them row by row.",
            "{0} = X × W_{0} বের করুন: {rows}টি সারি, প্রতি সারিতে {columns}টি সংখ্যা। সারির পর সারি লিখুন।",
        )
        said = Words(text.en.replace("{0}", letter), text.bn.replace("{0}", letter)).fill(**size)
        yield _matrix(sheet, f"1{letter}", letter, said, ("X", f"W_{letter}"), 0.0)
    yield from _scores(sheet, n_tokens, d_head)
    yield from _mask(sheet, n_tokens)
    yield from _softmax(sheet)
    text = Words("Compute the output, weights × V, row by row.", "আউটপুট বের করুন: ওজন × V, সারির পর সারি।")
    yield _matrix(sheet, "5", "output", text, ("weights", "V"), _CARRIED)


def _scores(sheet: Sheet, n_tokens: int, d_head: int) -> Iterator[Question]:
    yield Question(
        "2a",
        Words(
            "K has shape ({rows}, {columns}). What shape has Kᵀ?", "K-এর আকার ({rows}, {columns})। Kᵀ-এর আকার কত?"
        ).fill(rows=n_tokens, columns=d_head),
        (
            Words(
                "Turning swaps rows and columns: ({columns}, {rows}).",
                "উল্টালে সারি আর কলাম জায়গা বদলায়: ({columns}, {rows})।",
            ).fill(rows=n_tokens, columns=d_head),
        ),
        Expected((d_head, n_tokens), columns=2, exact=True),
    )
    yield Question(
        "2b-shape",
        Words("What shape has Q × Kᵀ?", "Q × Kᵀ-এর আকার কত?"),
        (
            Words(
                "({rows}, {columns}) × ({columns}, {rows}) gives ({rows}, {rows}): one score for each pair of tokens.",
                "({rows}, {columns}) × ({columns}, {rows}) থেকে হয় ({rows}, {rows}): প্রতি জোড়া টোকেনের জন্য একটি স্কোর।",
            ).fill(rows=n_tokens, columns=d_head),
        ),
        Expected((n_tokens, n_tokens), columns=2, exact=True),
    )
    yield _matrix(
        sheet, "2b", "products", Words("Compute Q × Kᵀ, row by row.", "Q × Kᵀ বের করুন, সারির পর সারি।"), ("Q", "K"), 0.0
    )
    text = Words(
        "Divide each number by √d_k = √{width} to get the scaled scores.",
        "প্রতিটি সংখ্যাকে √d_k = √{width} দিয়ে ভাগ করে স্কোর বের করুন।",
    )
    yield _matrix(sheet, "2c", "scores", text.fill(width=d_head), ("products",), _CARRIED)


def _mask(sheet: Sheet, n_tokens: int) -> Iterator[Question]:
    text = Words(
        "Write the causal mask of {rows} tokens: 1 where a token may look, 0 where not.",
        "{rows}টি টোকেনের কজাল (causal) মাস্ক লিখুন: যেখানে তাকানো যায় সেখানে 1, যেখানে যায় না সেখানে 0।",
    )
    mask = sheet.matrices["mask"]
    rows = "; ".join(" ".join(f"{value:g}" for value in row) for row in mask)
    yield Question(
        "3a",
        text.fill(rows=n_tokens),
        (Words(f"A token sees itself and those before it: {rows}", f"টোকেন নিজেকে আর আগেরগুলোকে দেখে: {rows}"),),
        Expected(tuple(mask.ravel().tolist()), columns=n_tokens, exact=True),
    )
    text = Words(
        "Apply the mask to the scores. Type -inf (or -999) for minus infinity.",
        "স্কোরে মাস্ক বসান। ঋণাত্মক অসীমের জায়গায় -inf (বা -999) লিখুন।",
    )
    yield _matrix(sheet, "3b", "masked", text, ("scores", "mask"), _CARRIED)
    yield Question("3b-why", Words("Why minus infinity?", "ঋণাত্মক অসীম কেন?"), (_WHY_HIDDEN,))


def _softmax(sheet: Sheet) -> Iterator[Question]:
    """One question for each row of the weights: 4a, 4b, 4c, and on where there are more tokens."""
    step, powers, sums = sheet.steps["weights"], sheet.steps["powers"], sheet.steps["sums"]
    n_tokens = len(step.rows)
    for row, token in enumerate(step.rows):
        text = Words(
            "Softmax of row {row}: what are the {columns} weights of “{token}”, hidden ones included?",
            "{row} নম্বর সারির সফটম্যাক্স: ঢাকা ঘরগুলোসহ “{token}”-এর {columns}টি ওজন কত?",
        )
        lines = [arithmetic(sheet, powers, row, column, _DECIMALS) for column in range(n_tokens)]
        lines.append(arithmetic(sheet, sums, row, 0, _DECIMALS))
        shares = [arithmetic(sheet, step, row, column, _DECIMALS) for column in range(n_tokens)]
        yield Question(
            f"4{chr(ord('a') + row)}",
            text.fill(row=row + 1, columns=n_tokens, token=token),
            tuple(same(line) for line in lines),
            Expected(tuple(step.values[row].tolist()), columns=n_tokens, slack=_CARRIED),
            ("masked",),
            tuple(shares),
        )


def _matrix(sheet: Sheet, number: str, name: str, text: Words, shows: tuple[str, ...], slack: float) -> Question:
    """A question whose answer is a whole step."""
    step = sheet.steps[name]
    height, width = step.values.shape
    cells = [(row, column) for row in range(height) for column in range(width)]
    expected = Expected(tuple(float(step.values[at]) for at in cells), columns=width, slack=slack)
    lines = tuple(arithmetic(sheet, step, row, column, _DECIMALS) for row, column in cells)
    return Question(number, text, (), expected, shows, lines)
